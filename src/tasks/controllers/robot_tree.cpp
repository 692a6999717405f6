#include "tasks/controllers/robot_tree.h"

#include <algorithm>
#include <limits>

#include "core/config.h"
#include "core/error.h"
#include "sim/mujoco/handle.h"

namespace cohort::tasks {
namespace {

Vec3 vec3_at(const mjtNum* v, int i) {
  return {v[3 * i], v[3 * i + 1], v[3 * i + 2]};
}
Quat quat_at(const mjtNum* q, int i) {
  return {q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3]};
}

// Those of vectors stay seen beside those of twists.
using tasks::operator+;
using tasks::operator*;

RobotTree::Twist operator+(const RobotTree::Twist& a, const RobotTree::Twist& b) {
  return {a.angular + b.angular, a.linear + b.linear};
}
RobotTree::Twist operator*(double s, const RobotTree::Twist& a) {
  return {s * a.angular, s * a.linear};
}
/// How a motion m changes that is carried along with the velocity v (Featherstone 2.31).
RobotTree::Twist cross_motion(const RobotTree::Twist& v, const RobotTree::Twist& m) {
  return {cross(v.angular, m.angular), cross(v.angular, m.linear) + cross(v.linear, m.angular)};
}
/// And a force (moment about the origin in angular, force in linear; 2.32).
RobotTree::Twist cross_force(const RobotTree::Twist& v, const RobotTree::Twist& f) {
  return {cross(v.angular, f.angular) + cross(v.linear, f.linear), cross(v.angular, f.linear)};
}
/// Momentum, or force of an acceleration.
RobotTree::Twist times(const RobotTree::Inertia& inertia, const RobotTree::Twist& v) {
  const auto& i = inertia.about_origin;
  const Vec3& w = v.angular;
  const Vec3 turned{i[0] * w[0] + i[3] * w[1] + i[4] * w[2], i[3] * w[0] + i[1] * w[1] + i[5] * w[2],
                    i[4] * w[0] + i[5] * w[1] + i[2] * w[2]};
  return {turned + cross(inertia.first, v.linear), inertia.mass * v.linear - cross(inertia.first, w)};
}
double power(const RobotTree::Twist& motion, const RobotTree::Twist& force) {
  return dot(motion.angular, force.angular) + dot(motion.linear, force.linear);
}

template <class Things>
int index_of(const Things& things, const std::string& name, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < things.size(); ++i) {
    if (things[i].name == name) return static_cast<int>(i);
    names.push_back(things[i].name);
  }
  const std::string near = config::nearest(name, names);
  throw Error(format("the robot has no {} `{}`{}", what, name, near.empty() ? "" : format(", is `{}` meant?", near)));
}

}  // namespace

RobotTree::RobotTree(std::span<const std::uint8_t> mjb, const std::string& root) {
  const sim::mj::ModelPtr model = sim::mj::load(mjb);
  const mjModel& m = *model;
  const auto body_name = [&](int b) { return std::string(m.names + m.name_bodyadr[b]); };
  int first = -1;
  for (int b = 1; b < m.nbody; ++b)
    if (body_name(b) == root) first = b;
  COHORT_THROW_UNLESS(first > 0, "the model has no body `{}`", root);
  for (int b = m.body_parentid[first]; b > 0; b = m.body_parentid[b]) {
    COHORT_THROW_UNLESS(m.body_jntnum[b] == 0 && m.body_mocapid[b] < 0, "body `{}`, which bears `{}`, moves",
                        body_name(b), root);
    const Quat quat = quat_at(m.body_quat, b);
    base_pos_ = vec3_at(m.body_pos, b) + rotation(quat) * base_pos_;
    base_quat_ = quat * base_quat_;
  }
  gravity_ = m.opt.disableflags & mjDSBL_GRAVITY ? Vec3{} : vec3_at(m.opt.gravity, 0);

  std::vector<int> local(static_cast<std::size_t>(m.nbody), -1);
  for (int b = first; b < m.nbody; ++b) {
    const int parent = local[static_cast<std::size_t>(m.body_parentid[b])];
    if (b != first && parent < 0) continue;
    local[static_cast<std::size_t>(b)] = static_cast<int>(bodies_.size());
    Body body;
    body.parent = parent;
    body.first_joint = static_cast<int>(joints_.size());
    body.joint_count = m.body_jntnum[b];
    body.pos = vec3_at(m.body_pos, b), body.quat = quat_at(m.body_quat, b);
    body.ipos = vec3_at(m.body_ipos, b), body.iquat = quat_at(m.body_iquat, b);
    body.diagonal = vec3_at(m.body_inertia, b);
    body.mass = m.body_mass[b];
    int before = -1;
    for (int up = parent; up >= 0 && before < 0; up = bodies_[static_cast<std::size_t>(up)].parent) {
      const Body& bearer = bodies_[static_cast<std::size_t>(up)];
      if (bearer.joint_count > 0) before = bearer.first_joint + bearer.joint_count - 1;
    }
    for (int j = m.body_jntadr[b]; j < m.body_jntadr[b] + m.body_jntnum[b]; ++j) {
      Joint joint;
      joint.name = m.names + m.name_jntadr[j];
      COHORT_THROW_UNLESS(m.jnt_type[j] == mjJNT_HINGE || m.jnt_type[j] == mjJNT_SLIDE,
                          "joint `{}` is neither a hinge nor a slide", joint.name);
      joint.body = static_cast<int>(bodies_.size());
      joint.slide = m.jnt_type[j] == mjJNT_SLIDE;
      joint.pos = vec3_at(m.jnt_pos, j), joint.axis = vec3_at(m.jnt_axis, j);
      joint.qpos0 = m.qpos0[m.jnt_qposadr[j]];
      joint.armature = m.dof_armature[m.jnt_dofadr[j]];
      joint.parent = before;
      before = static_cast<int>(joints_.size());
      joints_.push_back(joint);
      qpos_.push_back(m.jnt_qposadr[j]);
      dof_.push_back(m.jnt_dofadr[j]);
      constexpr double kNone = std::numeric_limits<double>::infinity();
      lower_.push_back(m.jnt_limited[j] ? m.jnt_range[2 * j] : -kNone);
      upper_.push_back(m.jnt_limited[j] ? m.jnt_range[2 * j + 1] : kNone);
    }
    bodies_.push_back(body);
  }
  for (int s = 0; s < m.nsite; ++s) {
    const int body = local[static_cast<std::size_t>(m.site_bodyid[s])];
    if (body >= 0)
      sites_.push_back({m.names + m.name_siteadr[s], body, vec3_at(m.site_pos, s), quat_at(m.site_quat, s)});
  }
}

int RobotTree::site(const std::string& name) const {
  return index_of(sites_, name, "site");
}
int RobotTree::joint(const std::string& name) const {
  return index_of(joints_, name, "joint");
}

RobotTree::Workspace::Workspace(const RobotTree& tree) {
  const std::size_t nb = tree.bodies_.size(), nj = tree.joints_.size();
  pos.resize(nb), quat.resize(nb), rot.resize(nb), inertia.resize(nb), composite.resize(nb);
  velocity.resize(nb), acceleration.resize(nb), force.resize(nb);
  anchor.resize(nj), axis.resize(nj), motion.resize(nj);
}

void RobotTree::place(std::span<const double> qpos, Workspace& w) const {
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const Body& body = bodies_[b];
    const auto parent = static_cast<std::size_t>(body.parent);
    Vec3 pos = body.parent < 0 ? base_pos_ + rotation(base_quat_) * body.pos : w.pos[parent] + w.rot[parent] * body.pos;
    Quat quat = (body.parent < 0 ? base_quat_ : w.quat[parent]) * body.quat;
    for (int k = 0; k < body.joint_count; ++k) {
      const auto j = static_cast<std::size_t>(body.first_joint + k);
      const Joint& joint = joints_[j];
      const Mat3 rot = rotation(quat);
      w.axis[j] = rot * joint.axis;
      w.anchor[j] = pos + rot * joint.pos;
      const double moved = qpos[static_cast<std::size_t>(qpos_[j])] - joint.qpos0;
      if (joint.slide) {
        pos = pos + moved * w.axis[j];
        w.motion[j] = {{}, w.axis[j]};
      } else {
        quat = quat * quaternion(joint.axis, moved);
        pos = w.anchor[j] - rotation(quat) * joint.pos;
        w.motion[j] = {w.axis[j], cross(w.anchor[j], w.axis[j])};
      }
    }
    quat = normalized(quat);
    w.pos[b] = pos, w.quat[b] = quat, w.rot[b] = rotation(quat);
  }
}

RobotTree::SitePose RobotTree::site_pose(const Workspace& w, int site) const {
  const Site& s = sites_[static_cast<std::size_t>(site)];
  const auto b = static_cast<std::size_t>(s.body);
  return {w.pos[b] + w.rot[b] * s.pos, w.rot[b] * rotation(s.quat)};
}

void RobotTree::jacobian(const Workspace& w, int site, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  const std::size_t n = joints_.size();
  const Vec3 point = site_pose(w, site).pos;
  int body = sites_[static_cast<std::size_t>(site)].body;
  while (body >= 0 && bodies_[static_cast<std::size_t>(body)].joint_count == 0)
    body = bodies_[static_cast<std::size_t>(body)].parent;
  if (body < 0) return;
  const Body& bearer = bodies_[static_cast<std::size_t>(body)];
  for (int k = bearer.first_joint + bearer.joint_count - 1; k >= 0; k = joints_[static_cast<std::size_t>(k)].parent) {
    const auto j = static_cast<std::size_t>(k);
    const Vec3 linear = w.motion[j].linear + cross(w.motion[j].angular, point);
    for (std::size_t i = 0; i < 3; ++i) {
      out[i * n + j] = linear[i];
      out[(3 + i) * n + j] = w.motion[j].angular[i];
    }
  }
}

void RobotTree::place_inertia(Workspace& w) const {
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const Body& body = bodies_[b];
    const Mat3 r = w.rot[b] * rotation(body.iquat);
    const Vec3 c = w.pos[b] + w.rot[b] * body.ipos;
    Inertia& inertia = w.inertia[b];
    inertia.mass = body.mass;
    inertia.first = body.mass * c;
    const double square = dot(c, c);
    constexpr std::size_t kRow[6] = {0, 1, 2, 0, 0, 1}, kColumn[6] = {0, 1, 2, 1, 2, 2};
    for (std::size_t k = 0; k < 6; ++k) {
      const std::size_t i = kRow[k], j = kColumn[k];
      double sum = body.mass * ((i == j ? square : 0.0) - c[i] * c[j]);
      for (std::size_t a = 0; a < 3; ++a) sum += r[3 * i + a] * body.diagonal[a] * r[3 * j + a];
      inertia.about_origin[k] = sum;
    }
  }
}

void RobotTree::mass_matrix(Workspace& w, std::span<double> out) const {
  place_inertia(w);
  const std::size_t n = joints_.size();
  std::copy(w.inertia.begin(), w.inertia.end(), w.composite.begin());
  for (std::size_t b = bodies_.size(); b-- > 1;) {
    if (bodies_[b].parent < 0) continue;
    Inertia& parent = w.composite[static_cast<std::size_t>(bodies_[b].parent)];
    const Inertia& own = w.composite[b];
    parent.mass += own.mass;
    parent.first = parent.first + own.first;
    for (std::size_t k = 0; k < 6; ++k) parent.about_origin[k] += own.about_origin[k];
  }
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const Twist force = times(w.composite[static_cast<std::size_t>(joints_[i].body)], w.motion[i]);
    for (int k = static_cast<int>(i); k >= 0; k = joints_[static_cast<std::size_t>(k)].parent) {
      const auto j = static_cast<std::size_t>(k);
      out[i * n + j] = out[j * n + i] = power(w.motion[j], force);
    }
    out[i * n + i] += joints_[i].armature;
  }
}

void RobotTree::bias(Workspace& w, std::span<const double> qvel, std::span<double> out) const {
  place_inertia(w);
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const Body& body = bodies_[b];
    Twist velocity{}, acceleration{{}, -1.0 * gravity_};
    if (body.parent >= 0) {
      velocity = w.velocity[static_cast<std::size_t>(body.parent)];
      acceleration = w.acceleration[static_cast<std::size_t>(body.parent)];
    }
    for (int k = 0; k < body.joint_count; ++k) {
      const auto j = static_cast<std::size_t>(body.first_joint + k);
      const Twist joint = qvel[static_cast<std::size_t>(dof_[j])] * w.motion[j];
      acceleration = acceleration + cross_motion(velocity, joint);
      velocity = velocity + joint;
    }
    w.velocity[b] = velocity, w.acceleration[b] = acceleration;
    w.force[b] = times(w.inertia[b], acceleration) + cross_force(velocity, times(w.inertia[b], velocity));
  }
  for (std::size_t b = bodies_.size(); b-- > 0;) {
    const Body& body = bodies_[b];
    for (int k = 0; k < body.joint_count; ++k) {
      const auto j = static_cast<std::size_t>(body.first_joint + k);
      out[j] = power(w.motion[j], w.force[b]);
    }
    if (body.parent >= 0) {
      Twist& parent = w.force[static_cast<std::size_t>(body.parent)];
      parent = parent + w.force[b];
    }
  }
}

}  // namespace cohort::tasks
