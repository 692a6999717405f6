#include "tasks/libero/frames.h"

#include <algorithm>

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"
#include "sim/mujoco/handle.h"

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

Frames::Frames(std::span<const std::uint8_t> mjb) {
  const sim::mj::ModelPtr model = sim::mj::load(mjb);
  const mjModel& m = *model;
  const auto name = [&](int address) { return std::string(m.names + address); };
  for (int b = 0; b < m.nbody; ++b)
    bodies_.push_back({name(m.name_bodyadr[b]), static_cast<std::size_t>(m.body_parentid[b]),
                       static_cast<std::size_t>(std::max(0, m.body_jntadr[b])),
                       static_cast<std::size_t>(m.body_jntnum[b]), vector_at(m.body_pos, b),
                       quaternion_at(m.body_quat, b)});
  for (int j = 0; j < m.njnt; ++j)
    joints_.push_back({name(m.name_jntadr[j]), static_cast<Kind>(m.jnt_type[j]),
                       static_cast<std::size_t>(m.jnt_bodyid[j]), static_cast<std::size_t>(m.jnt_qposadr[j]),
                       static_cast<std::size_t>(m.jnt_dofadr[j]), vector_at(m.jnt_pos, j), vector_at(m.jnt_axis, j),
                       m.qpos0[m.jnt_qposadr[j]], m.jnt_range[2 * j], m.jnt_range[2 * j + 1]});
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
  poses.pos[0] = {0, 0, 0};
  poses.quat[0] = {1, 0, 0, 0};
  for (std::size_t b = 1; b < bodies_.size(); ++b) {
    const Body& body = bodies_[b];
    Vec3 pos = poses.pos[body.parent] + rotation(poses.quat[body.parent]) * body.pos;
    Quat quat = poses.quat[body.parent] * body.quat;
    for (std::size_t j = body.first_joint; j < body.first_joint + body.joint_count; ++j) {
      const Joint& joint = joints_[j];
      const double* q = qpos.data() + joint.qpos;
      switch (joint.kind) {
        case Kind::kFree:
          pos = {q[0], q[1], q[2]};
          quat = {q[3], q[4], q[5], q[6]};
          break;
        case Kind::kSlide:
          pos = pos + (q[0] - joint.qpos0) * (rotation(quat) * joint.axis);
          break;
        case Kind::kBall:
        case Kind::kHinge: {
          const Vec3 anchor = pos + rotation(quat) * joint.pos;
          quat = quat * (joint.kind == Kind::kBall ? normalized({q[0], q[1], q[2], q[3]})
                                                   : quaternion(joint.axis, q[0] - joint.qpos0));
          pos = anchor - rotation(quat) * joint.pos;
          break;
        }
      }
    }
    poses.pos[b] = pos;
    poses.quat[b] = normalized(quat);
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
