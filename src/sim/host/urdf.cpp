#include "sim/host/urdf.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "core/config.h"
#include "core/error.h"
#include "formats/xml_elements.h"

namespace cohort::sim {

namespace {

struct UrdfJoint {
  std::string name, type, parent, child;
  std::optional<XmlElement> limit, mimic, axis;

  /// Has one position, which limits and <mimic> speak of.
  bool single() const { return type == "revolute" || type == "continuous" || type == "prismatic"; }
};

/// What is read by nobody here, and what that means for who loads the file.
constexpr std::pair<const char*, const char*> kLeftOut[] = {
    {"transmission", "joints have no actuators of their own; Scene::control_dofs_position and its kin drive them"},
    {"ros2_control", "joints have no actuators of their own; Scene::control_dofs_position and its kin drive them"},
    {"gazebo", "friction, sensors and plugins that stand in it have no effect"},
    {"sensor", "the model has no sensor of it"},
    {"safety_controller", "its limits have no effect"},
    {"calibration", "it has no effect"}};

constexpr const char* kShapes[] = {"box", "sphere", "cylinder", "capsule", "mesh"};

struct UrdfParts {
  std::string root;
  std::vector<std::string> links;
  std::vector<UrdfJoint> joints;
  int visuals = 0, collisions = 0;
  std::map<std::string, int> left_out;  ///< how many of kLeftOut
  std::string odd_shape;                ///< the first that MuJoCo does not know, with its link and line
};

/// Joints and links of the robot itself: <transmission> and <ros2_control> have elements of the same names.
UrdfParts parts_of(std::string_view xml) {
  UrdfParts parts;
  UrdfJoint* joint = nullptr;
  bool in_link = false, in_geometry = false;
  for (XmlElement& e : xml_elements(xml)) {
    if (e.depth == 0) parts.root = e.name;
    if (e.depth <= 1) joint = nullptr, in_link = e.name == "link";
    if (e.depth == 2 && in_link) parts.visuals += e.name == "visual", parts.collisions += e.name == "collision";
    for (const auto& [name, meaning] : kLeftOut) {
      if (e.name == name && (e.depth == 1 || (e.depth == 2 && joint != nullptr))) ++parts.left_out[name];
    }
    if (e.depth == 1 && e.name == "link") parts.links.push_back(e.attribute("name"));
    if (e.depth == 3) in_geometry = in_link && e.name == "geometry";
    if (e.depth == 4 && in_geometry && parts.odd_shape.empty() &&
        std::ranges::none_of(kShapes, [&](const char* shape) { return e.name == shape; }))
      parts.odd_shape = format("link `{}` has the shape <{}> (line {})", parts.links.back(), e.name, e.line);
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
    else if (e.name == "axis")
      joint->axis = std::move(e);
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

/// What is remarked of joints: once for all of which the same is said.
class JointRemarks {
 public:
  void add(const UrdfJoint& joint, std::string remark) {
    const auto known = std::find_if(remarks_.begin(), remarks_.end(), [&](const auto& r) { return r.first == remark; });
    if (known == remarks_.end())
      remarks_.push_back({std::move(remark), {format("`{}`", joint.name)}});
    else
      known->second.push_back(format("`{}`", joint.name));
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const auto& [remark, joints] : remarks_) {
      all.push_back(joints.size() == 1 ? format("joint {} {}", joints[0], remark)
                                       : format("joints {}: each {}", join(joints, ", "), remark));
    }
    return all;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> remarks_;
};

void remark_on_limits(const UrdfJoint& j, JointRemarks& remarks) {
  const bool turns = j.type == "revolute";
  if (!turns && j.type != "prismatic") return;
  const char* remedy = turns ? "give it lower < upper, or the type continuous, or fixed if it should not move"
                             : "give it lower < upper, or the type fixed if it should not move";
  if (!j.limit) {
    remarks.add(j, format("is {} and has no <limit>: it moves without limits; {}", j.type, remedy));
    return;
  }
  // Missing ones are zero.
  const double lower = urdf_number(*j.limit, "lower", 0), upper = urdf_number(*j.limit, "upper", 0);
  if (lower == 0 && upper == 0) {
    remarks.add(j, format("has limits from 0 to 0: it moves without limits; {}", remedy));
  } else if (lower == upper) {
    remarks.add(j, format("has limits from {} to {}: it moves without limits; {}", lower, upper, remedy));
  } else if (lower > upper) {
    remarks.add(j, format("has its limits turned round, {} to {}: it moves without limits; {}", lower, upper, remedy));
  }
  // A robot's joint turns a few times at most.
  constexpr double kMostTurned = 20;  // rad
  if (const double far = std::max(std::abs(lower), std::abs(upper)); turns && far > kMostTurned && far <= 720) {
    remarks.add(j, format("has limits from {} to {} rad: are they degrees? URDF has radians", lower, upper));
  }
  const double effort = urdf_number(*j.limit, "effort", 1);
  if (effort > 0 || !j.limit->has("effort")) return;
  remarks.add(j, format("has an effort limit of {}: {}; give it a positive one", effort,
                        effort < 0 ? "it is taken without its sign" : "its force is not limited"));
}

/// What MuJoCo refuses without saying which link or joint it is, with a remedy; "" where nothing is. borne: the links
/// that are the child of a joint.
std::string refusal(const UrdfParts& parts, const std::set<std::string>& borne) {
  if (!parts.root.empty() && parts.root != "robot") {
    return format("its root element is <{}>, and that of a URDF is <robot>{}", parts.root,
                  parts.root == "sdf"      ? ": SDF has to be written as one of the two that are read, URDF or MJCF"
                  : parts.root == "mujoco" ? ": this is MJCF, whose file ends in .xml"
                                           : "");
  }
  if (parts.links.empty()) return "it has no <link>, and a robot has one at least";
  if (!parts.odd_shape.empty()) {
    return parts.odd_shape + ": box, sphere, cylinder, capsule and mesh are known; make a mesh of it (STL, OBJ)";
  }
  if (std::ranges::all_of(parts.links, [&](const std::string& link) { return borne.contains(link); })) {
    return "each link is the child of a joint, so that none is the base: joints form a circle, of which one has to go";
  }
  for (const UrdfJoint& j : parts.joints) {
    if (j.type == "floating" && (j.parent != "world" || borne.contains("world"))) {
      return format(
          "joint `{}` is floating below `{}`: MuJoCo lets only what hangs on the world float. Name its parent "
          "`world`, or make three prismatic and three revolute joints of it",
          j.name, j.parent);
    }
    if (j.axis && j.type != "fixed" && j.type != "floating") {
      std::istringstream numbers(j.axis->attribute("xyz"));
      double x = 1, y = 1, z = 1;
      if (numbers >> x >> y >> z && x * x + y * y + z * z < 1e-12) {
        return format("joint `{}` has the axis {}, which is no direction: 0 0 1 is, say (line {})", j.name,
                      j.axis->attribute("xyz"), j.axis->line);
      }
    }
  }
  return "";
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
  const std::set<std::string> borne(children.begin(), children.end());
  wrong(refusal(parts, borne));
  JointRemarks of_joints;
  for (const UrdfJoint& j : parts.joints) {
    remark_on_limits(j, of_joints);
    if (!j.mimic) continue;
    wrong(mimic_error(j, by_name, names));
    const double offset = urdf_number(*j.mimic, "offset", 0);
    if (j.type == "fixed") {
      of_joints.add(j, "is fixed: its <mimic> has no effect");
    } else if (offset != 0) {
      of_joints.add(j, format("mimics `{}` with an offset of {}, and both start at 0: the first steps pull them "
                              "together; set their positions before (Scene::set_qpos)",
                              j.mimic->attribute("joint"), offset));
    }
  }
  remarks.warnings = of_joints.texts();
  std::vector<std::string> bases;
  for (const std::string& link : parts.links) {
    if (borne.count(link) == 0) bases.push_back(link);
  }
  if (bases.size() == 1 && bases[0] == "world") {
    remarks.on_world = true;
    // A file may say itself that its base moves freely.
    const auto free = [](const UrdfJoint& j) { return j.parent == "world" && j.type == "floating"; };
    if (std::none_of(parts.joints.begin(), parts.joints.end(), free)) {
      remarks.warnings.push_back("the link `world` is the world, so that the robot is fastened there");
    }
  }
  remarks.links = parts.links;
  remarks.has_visuals = parts.visuals > 0;
  remarks.seen_only = remarks.has_visuals && parts.collisions == 0;
  for (const auto& [name, meaning] : kLeftOut) {
    const auto found = parts.left_out.find(name);
    if (found != parts.left_out.end()) {
      remarks.warnings.push_back(format("{} <{}> left out: {}", found->second, name, meaning));
    }
  }
  if (bases.size() > 1) {
    remarks.warnings.push_back(
        format("links `{}` and `{}` are the child of no joint: both are bases, fastened to each "
               "other where they lie; is a joint missing?",
               bases[0], bases[1]));
  }
  return remarks;
}

std::string unexpanded_xacro(std::string_view xml) {
  constexpr const char* kRemedy = "write the file out first: xacro FILE > robot.urdf";
  bool read = true;  // what is left out anyway may hold what it likes
  for (const XmlElement& e : xml_elements(xml)) {
    if (e.depth <= 1) {
      const auto same = [&](const auto& left_out) { return e.name == left_out.first; };
      read = std::none_of(std::begin(kLeftOut), std::end(kLeftOut), same);
    }
    if (!read) continue;
    if (e.name.starts_with("xacro:")) {
      return format("line {}: the xacro macro <{}> is not known here; {}", e.line, e.name, kRemedy);
    }
    for (const auto& [key, value] : e.attributes) {
      const std::size_t at = std::min(value.find("${"), value.find("$("));
      if (at == std::string::npos) continue;
      const std::size_t end = value.find(value[at + 1] == '{' ? '}' : ')', at);
      return format("line {}: `{}` of <{} {}=...> is xacro's, which is not known here; {}", e.line,
                    value.substr(at, end == std::string::npos ? end : end + 1 - at), e.name, key, kRemedy);
    }
  }
  return "";
}

std::string with_visuals(std::string_view xml) {
  const std::vector<XmlElement> elements = xml_elements(xml);
  std::string text(xml);
  const XmlElement *root = nullptr, *mujoco = nullptr, *compiler = nullptr;
  for (const XmlElement& e : elements) {
    if (e.depth == 0 && root == nullptr) root = &e;
    if (e.depth == 1 && e.name == "mujoco" && mujoco == nullptr) mujoco = &e;
    if (e.depth == 2 && e.name == "compiler" && mujoco != nullptr && compiler == nullptr) compiler = &e;
  }
  const auto is_empty = [&](const XmlElement& e) { return e.end >= 2 && text[e.end - 2] == '/'; };
  constexpr const char* kSetting = " discardvisual=\"false\"";
  if (root == nullptr || is_empty(*root) || root->end > text.size()) return text;
  if (compiler != nullptr) {
    if (!compiler->has("discardvisual")) text.insert(compiler->end - (is_empty(*compiler) ? 2 : 1), kSetting);
  } else if (mujoco != nullptr && !is_empty(*mujoco)) {
    text.insert(mujoco->end, format("<compiler{}/>", kSetting));
  } else if (mujoco == nullptr) {
    text.insert(root->end, format("<mujoco><compiler{}/></mujoco>", kSetting));
  }
  return text;
}

std::string with_whole_inertials(std::string_view xml) {
  const std::vector<XmlElement> elements = xml_elements(xml);
  std::string text;
  std::size_t done = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const XmlElement& e = elements[i];
    if (e.depth != 2 || e.name != "inertial" || e.end < 2 || xml[e.end - 2] == '/') continue;
    bool mass = false, inertia = false;
    for (std::size_t k = i + 1; k < elements.size() && elements[k].depth > 2; ++k)
      mass = mass || elements[k].name == "mass", inertia = inertia || elements[k].name == "inertia";
    text += xml.substr(done, e.end - done);
    done = e.end;
    if (!mass) text += "<mass value=\"0\"/>";
    if (!inertia) text += "<inertia ixx=\"0\" iyy=\"0\" izz=\"0\" ixy=\"0\" ixz=\"0\" iyz=\"0\"/>";
  }
  return text + std::string(xml.substr(done));
}

std::vector<std::pair<std::string, std::string>> srdf_exclusions(std::string_view xml,
                                                                 const std::set<std::string>& links) {
  using Pair = std::pair<std::string, std::string>;
  std::set<Pair> all, enabled;
  std::vector<std::string> none;  // collide with nothing that is not enabled
  const auto pair_of = [](const XmlElement& e) {
    const std::string one = e.attribute("link1"), other = e.attribute("link2");
    return one < other ? Pair{one, other} : Pair{other, one};
  };
  const std::vector<XmlElement> elements = xml_elements(xml);
  COHORT_THROW_UNLESS(!elements.empty() && elements.front().name == "robot",
                      "this is no SRDF: its root element is {}, <robot> is expected",
                      elements.empty() ? std::string("missing") : "<" + elements.front().name + ">");
  for (const XmlElement& e : elements) {
    if (e.depth != 1) continue;
    if (e.name == "disable_collisions") all.insert(pair_of(e));
    if (e.name == "enable_collisions") enabled.insert(pair_of(e));
    if (e.name == "disable_default_collisions") none.push_back(e.attribute("link"));
  }
  for (const std::string& one : none) {
    for (const std::string& other : links) {
      const Pair pair = one < other ? Pair{one, other} : Pair{other, one};
      if (one != other && enabled.count(pair) == 0) all.insert(pair);
    }
  }
  std::vector<Pair> pairs;
  for (const Pair& pair : all) {
    if (links.count(pair.first) > 0 && links.count(pair.second) > 0 && pair.first != pair.second) pairs.push_back(pair);
  }
  return pairs;
}

std::set<std::string> links_of_srdf(std::string_view xml) {
  std::set<std::string> links;
  for (const XmlElement& e : xml_elements(xml)) {
    if (e.depth != 1 ||
        (e.name != "disable_collisions" && e.name != "enable_collisions" && e.name != "disable_default_collisions"))
      continue;
    for (const char* key : {"link", "link1", "link2"})
      if (e.has(key)) links.insert(e.attribute(key));
  }
  return links;
}

}  // namespace cohort::sim
