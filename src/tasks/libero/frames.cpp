#include "tasks/libero/frames.h"

#include <algorithm>

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"
#include "sim/host/import/handle.h"

namespace cohort::tasks::libero {
namespace {

Vec3 vector_at(const mjtNum* v, int i) {
  return {v[3 * i], v[3 * i + 1], v[3 * i + 2]};
}
Quat quaternion_at(const mjtNum* q, int i) {
  return {q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3]};
}

template <class Things>
std::size_t find_named(const Things& things, const std::string& name, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < things.size(); ++i) {
    if (things[i].name == name) return i;
    names.push_back(things[i].name);
  }
  const std::string near = config::nearest(name, names);
  throw Error(format("the scene has no {} `{}`{}", what, name, near.empty() ? "" : format(", is `{}` meant?", near)));
}

}  // namespace

Frames::Frames(const sim::Scene& scene) : kinematics_(scene.kinematics()) {
  const sim::mj::ModelPtr model = sim::mj::load(scene.binary_model());
  const mjModel& m = *model;
  const auto name = [&](int address) { return std::string(m.names + address); };
  for (int b = 0; b < m.nbody; ++b)
    bodies_.push_back({name(m.name_bodyadr[b]), static_cast<std::size_t>(m.body_parentid[b])});
  for (int j = 0; j < m.njnt; ++j)
    joints_.push_back({name(m.name_jntadr[j]), static_cast<Kind>(m.jnt_type[j]),
                       static_cast<std::size_t>(m.jnt_bodyid[j]), static_cast<std::size_t>(m.jnt_qposadr[j]),
                       static_cast<std::size_t>(m.jnt_dofadr[j]), vector_at(m.jnt_axis, j), m.jnt_range[2 * j],
                       m.jnt_range[2 * j + 1]});
  for (int s = 0; s < m.nsite; ++s)
    sites_.push_back({name(m.name_siteadr[s]), static_cast<std::size_t>(m.site_bodyid[s]), vector_at(m.site_pos, s),
                      quaternion_at(m.site_quat, s)});
  for (int g = 0; g < m.ngeom; ++g)
    if (m.geom_type[g] == mjGEOM_BOX && (m.geom_contype[g] != 0 || m.geom_conaffinity[g] != 0))
      boxes_.push_back({static_cast<std::size_t>(m.geom_bodyid[g]), vector_at(m.geom_pos, g), vector_at(m.geom_size, g),
                        quaternion_at(m.geom_quat, g)});
}

std::size_t Frames::body(const std::string& name) const {
  return find_named(bodies_, name, "body");
}
std::size_t Frames::site(const std::string& name) const {
  return find_named(sites_, name, "site");
}
std::size_t Frames::joint(const std::string& name) const {
  return find_named(joints_, name, "joint");
}

void Frames::place(std::span<const double> qpos, Poses& poses) const {
  const sim::Kinematics::Posture posture = kinematics_.at(qpos);
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const sim::Kinematics::Pose pose = posture.link_pose(static_cast<int>(b));
    poses.pos[b] = pose.pos, poses.quat[b] = pose.quat;
  }
}

Frames::Pose Frames::site_pose(const Poses& poses, std::size_t i) const {
  const SiteFrame& site = sites_[i];
  return {poses.pos[site.body] + rotation(poses.quat[site.body]) * site.pos,
          rotation(normalized(poses.quat[site.body] * site.quat))};
}

Vec3 Frames::joint_axis(const Poses& poses, std::size_t i) const {
  return rotation(poses.quat[joints_[i].body]) * joints_[i].axis;
}

}  // namespace cohort::tasks::libero
