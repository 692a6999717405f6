#include "sim/host/model_info.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "core/config.h"
#include "core/error.h"
#include "sim/checksum.h"

namespace cohort::sim {

namespace {

template <class T>
int find_named(const std::vector<T>& items, const std::string& wanted, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].name == wanted) return static_cast<int>(i);
    if (!items[i].name.empty()) names.push_back(items[i].name);
  }
  const std::string near = config::nearest(wanted, names);
  throw Error(
      format("the model has no {} named `{}`{}", what, wanted,
             near.empty() ? format(" (it has {} named ones)", names.size()) : format("; is `{}` meant?", near)));
}

}  // namespace

int size_count(const std::string& shape) {
  if (shape == "sphere") return 1;
  if (shape == "capsule" || shape == "cylinder") return 2;
  return shape == "ellipsoid" || shape == "box" ? 3 : 0;
}

int ModelInfo::link(const std::string& wanted) const {
  return find_named(links, wanted, "link");
}
int ModelInfo::joint(const std::string& wanted) const {
  return find_named(joints, wanted, "joint");
}
int ModelInfo::actuator(const std::string& wanted) const {
  return find_named(actuators, wanted, "actuator");
}
int ModelInfo::sensor(const std::string& wanted) const {
  return find_named(sensors, wanted, "sensor");
}
int ModelInfo::geom(const std::string& wanted) const {
  return find_named(geoms, wanted, "geom");
}
int ModelInfo::site(const std::string& wanted) const {
  return find_named(sites, wanted, "site");
}
bool ModelInfo::is_fixed(int link) const {
  COHORT_CHECK(link >= 0 && link < static_cast<int>(links.size()), "link {} of {}", link, links.size());
  for (int k = link; k > 0; k = links[static_cast<std::size_t>(k)].parent) {
    const LinkInfo& own = links[static_cast<std::size_t>(k)];
    if (own.dof_count > 0 || own.mocap >= 0) return false;
  }
  return true;
}
std::vector<std::uint8_t> ModelInfo::fixed_geoms() const {
  std::vector<std::uint8_t> fixed;
  for (const GeomInfo& geom : geoms) fixed.push_back(is_fixed(geom.link));
  return fixed;
}
int ModelInfo::keyframe(const std::string& wanted) const {
  for (std::size_t k = 0; k < keyframes.size(); ++k) {
    if (!wanted.empty() && keyframes[k].name == wanted) return static_cast<int>(k);
  }
  std::size_t index = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [stop, problem] = std::from_chars(wanted.data(), end, index);
  const bool is_index = problem == std::errc() && stop == end;
  if (is_index && index < keyframes.size()) return static_cast<int>(index);
  if (keyframes.empty()) throw Error(format("there is no keyframe `{}`: the model has none", wanted));
  std::vector<std::string> names;
  for (const KeyframeInfo& k : keyframes) {
    if (!k.name.empty()) names.push_back(k.name);
  }
  if (names.size() > 4) names.resize(4), names.push_back("...");
  const std::string indices =
      keyframes.size() == 1 ? "0, its only one" : format("0 to {}, their indices", keyframes.size() - 1);
  if (is_index || names.empty()) {
    throw Error(format("the model has no keyframe `{}`: name {}{}", wanted, indices,
                       names.empty() ? "; they have no names" : format(", or a name: {}", join(names, ", "))));
  }
  const std::string near = config::nearest(wanted, names);
  throw Error(format(
      "the model has no keyframe named `{}`{}", wanted,
      near.empty() ? format("; it has {} (or {})", join(names, ", "), indices) : format("; is `{}` meant?", near)));
}

std::string ModelInfo::keyframe_text(int keyframe) const {
  const std::string& own = keyframes.at(static_cast<std::size_t>(keyframe)).name;
  return own.empty() ? format("keyframe {}", keyframe) : format("keyframe `{}`", own);
}

std::string ModelInfo::starts_outside_limits(int keyframe) const {
  constexpr double kSlack = 1e-6;  // rad, m: limits in degrees are rounded
  constexpr int kNamed = 3;
  const auto outside = [](const JointInfo& j, const std::vector<double>& qpos) {
    if (!j.limited || kJointQpos[static_cast<int>(j.type)] != 1) return false;
    const double q = qpos[static_cast<std::size_t>(j.qpos)];
    return q < j.range[0] - kSlack || q > j.range[1] + kSlack;
  };
  const std::vector<double>& start = keyframe < 0 ? qpos0 : keyframes.at(static_cast<std::size_t>(keyframe)).qpos;
  std::string list;
  int count = 0;
  for (const JointInfo& j : joints) {
    if (!outside(j, start)) continue;
    const double q = start[static_cast<std::size_t>(j.qpos)];
    if (++count <= kNamed) {
      list += format("{}`{}` at {:.4g} of [{:.4g}, {:.4g}]", count == 1 ? "" : ", ", j.name, q, j.range[0], j.range[1]);
    }
  }
  if (count == 0) return "";
  if (count > kNamed) list += format(" and {} more", count - kNamed);
  std::string elsewhere = "another state (Scene::set_qpos)";
  for (std::size_t k = 0; k < keyframes.size(); ++k) {
    const auto leaves = [&](const JointInfo& j) { return outside(j, keyframes[k].qpos); };
    if (static_cast<int>(k) == keyframe || std::any_of(joints.begin(), joints.end(), leaves)) continue;
    elsewhere =
        format("{} (--keyframe, Scene::reset_to_keyframe) or another state", keyframe_text(static_cast<int>(k)));
    break;
  }
  return format("{} lies outside the limits of {} joint{}: {}; the first steps throw {} there. Start from {}",
                keyframe < 0 ? "the default state" : keyframe_text(keyframe), count, count == 1 ? "" : "s", list,
                count == 1 ? "it" : "them", elsewhere);
}

std::vector<int> ModelInfo::joint_of_dof() const {
  std::vector<int> owner(static_cast<std::size_t>(nv), -1);
  for (std::size_t j = 0; j < joints.size(); ++j) {
    for (int k = 0; k < kJointDofs[static_cast<int>(joints[j].type)]; ++k) {
      owner[static_cast<std::size_t>(joints[j].dof + k)] = static_cast<int>(j);
    }
  }
  return owner;
}

std::uint64_t ModelInfo::fingerprint() const {
  std::string text = format("{} {} {} {} {} {} {} {} {} {} {}", content, nq, nv, nu, na, nmocap, nsensordata, timestep,
                            integrator, solver, cone);
  const auto add = [&text](const auto&... values) { ((text += format(" {}", values)), ...); };
  for (const LinkInfo& l : links) add(l.name, l.parent, l.first_dof, l.dof_count, l.mocap, l.mass);
  for (const JointInfo& j : joints) {
    add(j.name, static_cast<int>(j.type), j.link, j.limited, j.range[0], j.range[1]);
    for (std::size_t i = 0; i < 3; ++i) add(j.axis[i], j.pos[i]);
  }
  for (const ActuatorInfo& a : actuators) add(a.name, static_cast<int>(a.kind), a.dof, a.gear, a.range[0], a.range[1]);
  for (const SensorInfo& s : sensors) add(s.name, s.type, s.address, s.size);
  for (const GeomInfo& g : geoms) add(g.name, g.type, g.link);
  for (const double q : qpos0) add(q);
  return checksum(text);
}

}  // namespace cohort::sim
