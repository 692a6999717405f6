#include "sim/urdf.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "core/config.h"
#include "core/format.h"
#include "sim/xml_elements.h"

namespace cohort::sim {

namespace {

struct UrdfJoint {
  std::string name, type, parent, child;
  std::optional<XmlElement> limit, mimic;

  /// Has one position, which limits and <mimic> speak of.
  bool single() const { return type == "revolute" || type == "continuous" || type == "prismatic"; }
};

struct UrdfParts {
  std::vector<std::string> links;
  std::vector<UrdfJoint> joints;
};

/// Joints and links of the robot itself: <transmission> and <ros2_control> have elements of the same names.
UrdfParts parts_of(std::string_view xml) {
  UrdfParts parts;
  UrdfJoint* joint = nullptr;
  for (XmlElement& e : xml_elements(xml)) {
    if (e.depth <= 1) joint = nullptr;
    if (e.depth == 1 && e.name == "link") parts.links.push_back(e.attribute("name"));
    if (e.depth == 1 && e.name == "joint") {
      joint = &parts.joints.emplace_back();
      joint->name = e.attribute("name");
      joint->type = e.attribute("type");
    }
    if (e.depth != 2 || joint == nullptr) continue;
    if (e.name == "parent") joint->parent = e.attribute("link");
    if (e.name == "child") joint->child = e.attribute("link");
    if (e.name == "limit")
      joint->limit = std::move(e);
    else if (e.name == "mimic")
      joint->mimic = std::move(e);
  }
  return parts;
}

double urdf_number(const XmlElement& e, const char* key, double otherwise) {
  return e.has(key) ? std::strtod(e.attribute(key).c_str(), nullptr) : otherwise;
}

std::string meant(const std::string& wanted, const std::vector<std::string>& names) {
  const std::string near = config::nearest(wanted, names);
  return near.empty() ? "" : format("; is `{}` meant?", near);
}

/// The first name that stands in the list twice; "" where none does.
std::string repeated(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) return name;
  }
  return "";
}

std::string mimic_error(const UrdfJoint& j, const std::map<std::string, const UrdfJoint*>& by_name,
                        const std::vector<std::string>& names) {
  const std::string wanted = j.mimic->attribute("joint");
  const auto found = by_name.find(wanted);
  if (found == by_name.end()) {
    return format("joint `{}` mimics `{}`, and no joint has that name{}", j.name, wanted, meant(wanted, names));
  }
  const UrdfJoint& lead = *found->second;
  if (j.type == "fixed") return "";  // a warning
  if (lead.type == "fixed") {
    return format(
        "joint `{}` mimics `{}`, which is fixed and has no position: take the <mimic> out, or make `{}` fixed too, or "
        "`{}` movable",
        j.name, wanted, j.name, wanted);
  }
  for (const UrdfJoint* one : {&j, &lead}) {
    if (one->single()) continue;
    return format(
        "joint `{}` mimics `{}`, but `{}` is {}: <mimic> is between revolute, continuous and prismatic joints", j.name,
        wanted, one->name, one->type);
  }
  // Round a circle no joint leads. A chain is no longer than there are joints.
  const UrdfJoint* at = &lead;
  for (std::size_t i = 0; i <= names.size() && at->mimic; ++i) {
    if (at == &j) {
      return format("joint `{}` mimics {}: one of the joints that mimic each other has to lead, without a <mimic>",
                    j.name, &lead == &j ? std::string("itself") : format("`{}`, which mimics it in turn", wanted));
    }
    const auto next = by_name.find(at->mimic->attribute("joint"));
    if (next == by_name.end()) break;
    at = next->second;
  }
  return "";
}

void warn_of_limits(const UrdfJoint& j, std::vector<std::string>& warnings) {
  const bool turns = j.type == "revolute";
  if (!turns && j.type != "prismatic") return;
  const char* remedy = turns ? "give it lower < upper, or the type continuous, or fixed if it should not move"
                             : "give it lower < upper, or the type fixed if it should not move";
  if (!j.limit) {
    warnings.push_back(
        format("joint `{}` is {} and has no <limit>: it moves without limits; {}", j.name, j.type, remedy));
    return;
  }
  // Missing ones are zero.
  const double lower = urdf_number(*j.limit, "lower", 0), upper = urdf_number(*j.limit, "upper", 0);
  if (lower == 0 && upper == 0) {
    warnings.push_back(format("joint `{}` has limits from 0 to 0: it moves without limits; {}", j.name, remedy));
  } else if (lower == upper) {
    warnings.push_back(
        format("joint `{}` has limits from {} to {}: it moves without limits; {}", j.name, lower, upper, remedy));
  } else if (lower > upper) {
    warnings.push_back(format("joint `{}` has its limits turned round, {} to {}: it moves without limits; {}", j.name,
                              lower, upper, remedy));
  }
  const double effort = urdf_number(*j.limit, "effort", 1);
  if (effort > 0 || !j.limit->has("effort")) return;
  warnings.push_back(format("joint `{}` has an effort limit of {}: {}; give it a positive one", j.name, effort,
                            effort < 0 ? "it is taken without its sign" : "its force is not limited"));
}

}  // namespace

UrdfRemarks check_urdf(std::string_view xml) {
  UrdfRemarks remarks;
  const UrdfParts parts = parts_of(xml);
  std::vector<std::string> names, children;
  std::map<std::string, const UrdfJoint*> by_name;
  for (const UrdfJoint& j : parts.joints) {
    names.push_back(j.name);
    children.push_back(j.child);
    by_name.emplace(j.name, &j);
  }
  const auto wrong = [&remarks](std::string message) {
    if (remarks.error.empty()) remarks.error = std::move(message);
  };
  if (const std::string name = repeated(parts.links); !name.empty()) {
    wrong(format("two links are named `{}`: give one of them another name", name));
  }
  if (const std::string name = repeated(names); !name.empty()) {
    wrong(format("two joints are named `{}`: give one of them another name", name));
  }
  const std::set<std::string> links(parts.links.begin(), parts.links.end());
  for (const UrdfJoint& j : parts.joints) {
    for (const auto& [role, link] : {std::pair{"parent", &j.parent}, std::pair{"child", &j.child}}) {
      if (links.count(*link) > 0) continue;
      wrong(format("joint `{}` has the {} link `{}`, and no link has that name{}", j.name, role, *link,
                   meant(*link, parts.links)));
    }
  }
  if (const std::string name = repeated(children); !name.empty()) {
    wrong(format("link `{}` is the child of two joints: it can have one parent", name));
  }
  for (const UrdfJoint& j : parts.joints) {
    warn_of_limits(j, remarks.warnings);
    if (!j.mimic) continue;
    wrong(mimic_error(j, by_name, names));
    const double offset = urdf_number(*j.mimic, "offset", 0);
    if (j.type == "fixed") {
      remarks.warnings.push_back(format("joint `{}` is fixed: its <mimic> has no effect", j.name));
    } else if (offset != 0) {
      remarks.warnings.push_back(format(
          "joint `{}` mimics `{}` with an offset of {}, and both start at 0: the first steps pull them together; set "
          "their positions before (Scene::set_qpos)",
          j.name, j.mimic->attribute("joint"), offset));
    }
  }
  std::vector<std::string> bases;
  const std::set<std::string> borne(children.begin(), children.end());
  for (const std::string& link : parts.links) {
    if (borne.count(link) == 0) bases.push_back(link);
  }
  if (bases.size() > 1) {
    remarks.warnings.push_back(
        format("links `{}` and `{}` are the child of no joint: both are bases, fastened to each "
               "other where they lie; is a joint missing?",
               bases[0], bases[1]));
  }
  return remarks;
}

}  // namespace cohort::sim
