#include "sim/model_info.h"

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
int ModelInfo::keyframe(const std::string& wanted) const {
  return find_named(keyframes, wanted, "keyframe");
}

std::string ModelInfo::starts_outside_limits() const {
  constexpr double kSlack = 1e-6;  // rad, m: limits in degrees are rounded
  constexpr int kNamed = 3;
  std::string list;
  int count = 0;
  for (const JointInfo& j : joints) {
    if (!j.limited || kJointQpos[static_cast<int>(j.type)] != 1) continue;
    const double q = qpos0[static_cast<std::size_t>(j.qpos)];
    if (q >= j.range[0] - kSlack && q <= j.range[1] + kSlack) continue;
    if (++count <= kNamed) {
      list += format("{}`{}` at {:.4g} of [{:.4g}, {:.4g}]", count == 1 ? "" : ", ", j.name, q, j.range[0], j.range[1]);
    }
  }
  if (count == 0) return "";
  if (count > kNamed) list += format(" and {} more", count - kNamed);
  return format(
      "the default state lies outside the limits of {} joint{}: {}; the first steps throw {} there. Start from {}",
      count, count == 1 ? "" : "s", list, count == 1 ? "it" : "them",
      keyframes.empty()
          ? "another state (Scene::set_qpos)"
          : format("keyframe `{}` (--keyframe, Scene::reset_to_keyframe) or another state", keyframes.front().name));
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
