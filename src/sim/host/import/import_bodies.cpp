// Bodies, joints, dofs: welded links are fused, axes turned onto coordinate axes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "core/error.h"
#include "sim/host/import/handle.h"
#include "sim/host/import/importer.h"
#include "sim/host/import/unsupported.h"

namespace cohort::sim::mj {

void Importer::bodies() {
  const int n = static_cast<int>(m_.nbody);
  body_of_.assign(at(n), -1);
  // Pose of each link in its body's frame (in the world's for static links).
  link_rot_.assign(at(n), kIdentity);
  link_pos_.assign(at(n), Vec3{});
  std::vector<MassSum> sums;
  for (int b = 1; b < n; ++b) {
    const int parent = m_.body_parentid[b];
    const Mat3 rot = multiply(link_rot_[at(parent)], from_quat(m_.body_quat + 4 * b));
    Vec3 pos = rotate(link_rot_[at(parent)], m_.body_pos + 3 * b);
    for (std::size_t i = 0; i < 3; ++i) pos[i] += link_pos_[at(parent)][i];
    if (m_.body_jntnum[b] == 0 && m_.body_mocapid[b] < 0) {
      body_of_[at(b)] = body_of_[at(parent)];
      link_rot_[at(b)] = rot;
      link_pos_[at(b)] = pos;
    } else {
      add_link_bodies(b, body_of_[at(parent)], rot, pos);
      sums.resize(out_.body.size());
    }
    if (body_of_[at(b)] >= 0) add_mass(sums[at(body_of_[at(b)])], b);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) finish_mass(out_.body[i], sums[i]);
  for (int b = 0; b < n; ++b) {
    LinkRecord link{};
    link.body = body_of_[at(b)];
    put(link.pos, link_pos_[at(b)]);
    std::array<double, 4> q;
    mju_mat2Quat(q.data(), link_rot_[at(b)].data());
    put(link.quat, q);
    Vec3 com = rotate(link_rot_[at(b)], m_.body_ipos + 3 * b);
    for (std::size_t i = 0; i < 3; ++i) com[i] += link_pos_[at(b)][i];
    put(link.com, com);
    MassSum alone;
    add_mass(alone, b);
    BodyRecord own{};
    finish_mass(own, alone);
    link.mass = f32(m_.body_mass[b]);
    std::copy_n(own.inertia, 6, link.inertia);
    link.gravcomp = alone.mass > 0 ? f32(alone.gravcomp / alone.mass) : 0;
    out_.link.push_back(link);
  }
}

void Importer::add_link_bodies(int b, int parent, const Mat3& rot, const Vec3& pos) {
  const int first = m_.body_jntadr[b], end = first + m_.body_jntnum[b];
  int begin = first;
  do {
    const auto together = [&](int j) { return m_.jnt_type[j] == mjJNT_HINGE || m_.jnt_type[j] == mjJNT_SLIDE; };
    int next = begin + 1;
    while (begin < end && together(begin) && next < end && together(next)) ++next;
    if (begin == first) {
      add_body(b, parent, rot, pos, begin, std::min(next, end) - begin);
    } else {
      // The frame of the link, in which the next joints are given, as the last body carries it.
      add_body(b, body_of_[at(b)], link_rot_[at(b)], link_pos_[at(b)], begin, next - begin);
    }
    begin = next;
  } while (begin < end);
}

void Importer::add_body(int b, int parent, const Mat3& rot, const Vec3& pos, int first, int count) {
  const int index = static_cast<int>(out_.body.size());
  body_of_[at(b)] = index;
  BodyRecord r{};
  r.parent = parent;
  r.root = parent < 0 ? index : out_.body[at(parent)].root;
  r.first_joint = static_cast<int>(out_.joint.size());
  r.first_dof = count > 0 ? m_.jnt_dofadr[first] : 0;
  r.mocap = m_.body_mocapid[b];
  for (int j = first; j < first + count; ++j) r.dof_count += kJointDofs[m_.jnt_type[j]];
  Mat3 turn = kIdentity;  // the body's frame in the link's
  if (r.mocap >= 0) {
    r.kind = kBodyMocap;
  } else if (m_.jnt_type[first] == mjJNT_FREE) {
    r.kind = kBodyFree;
    r.qpos = m_.jnt_qposadr[first];
    if (!off(mjDSBL_SPRING)) r.stiffness = f32(m_.jnt_stiffness[first]);
    r.stands_alone = m_.tree_dofnum[m_.dof_treeid[r.first_dof]] == 6;
  } else if (m_.jnt_type[first] == mjJNT_BALL) {
    r.kind = kBodyBall;
    r.qpos = m_.jnt_qposadr[first];
    if (!off(mjDSBL_SPRING)) r.stiffness = f32(m_.jnt_stiffness[first]);
    put(r.anchor, m_.jnt_pos + 3 * first, 3);
  } else {
    r.kind = kBodyJoints;
    r.joint_count = count;
    turn = frame_for_joints(first, count);
    for (int j = first; j < first + count; ++j) add_joint(index, j, turn);
  }
  const Mat3 placed = multiply(rot, turn);
  put(r.pos, pos);
  put(r.rot, placed);
  r.turned = 0;
  for (std::size_t i = 0; i < 9; ++i) r.turned |= std::abs(placed[i] - kIdentity[i]) > kTiny;
  // A free body's orientation is its quaternion: the joint replaces the pose in the file.
  link_rot_[at(b)] = transpose(turn);
  link_pos_[at(b)] = {};
  out_.body.push_back(r);
}

/// Leaves the frame alone when an axis is a coordinate axis already; otherwise puts the first hinge onto z.
Mat3 Importer::frame_for_joints(int first, int count) const {
  double sign;
  for (int j = first; j < first + count; ++j) {
    const Vec3 axis{m_.jnt_axis[3 * j], m_.jnt_axis[3 * j + 1], m_.jnt_axis[3 * j + 2]};
    if (coordinate_axis(axis, sign) >= 0) return kIdentity;
  }
  const Vec3 axis{m_.jnt_axis[3 * first], m_.jnt_axis[3 * first + 1], m_.jnt_axis[3 * first + 2]};
  if (count == 1) return frame_with_z(axis, nullptr);
  const double* o = m_.jnt_axis + 3 * (first + 1);
  const Vec3 other{o[0], o[1], o[2]};
  return frame_with_z(axis, &other);
}

void Importer::add_joint(int body, int j, const Mat3& turn) {
  JointRecord r{};
  r.hinge = m_.jnt_type[j] == mjJNT_HINGE;
  r.body = body;
  r.qpos = m_.jnt_qposadr[j];
  r.dof = m_.jnt_dofadr[j];
  const Vec3 axis = rotate_back(turn, m_.jnt_axis + 3 * j), pos = rotate_back(turn, m_.jnt_pos + 3 * j);
  double sign = 1;
  const int coordinate = coordinate_axis(axis, sign);
  r.axis_kind = coordinate >= 0 ? coordinate : kAxisAny;
  r.sign = f32(sign);
  put(r.axis, axis);
  put(r.pos, pos);
  r.has_pos = mju_norm3(pos.data()) > kTiny;
  r.qpos0 = f32(m_.qpos0[r.qpos]);
  if (!off(mjDSBL_SPRING)) r.stiffness = f32(m_.jnt_stiffness[j]);
  r.spring_qpos = f32(m_.qpos_spring[r.qpos]);
  r.force_limited = m_.jnt_actfrclimited[j];
  r.force_lower = f32(m_.jnt_actfrcrange[2 * j]);
  r.force_upper = f32(m_.jnt_actfrcrange[2 * j + 1]);
  out_.joint.push_back(r);
}

void Importer::add_mass(MassSum& sum, int b) const {
  const double mass = m_.body_mass[b];
  Vec3 com = rotate(link_rot_[at(b)], m_.body_ipos + 3 * b);
  for (std::size_t i = 0; i < 3; ++i) com[i] += link_pos_[at(b)][i];
  const Mat3 axes = multiply(link_rot_[at(b)], from_quat(m_.body_iquat + 4 * b));
  const double squared = mju_dot3(com.data(), com.data());
  sum.mass += mass;
  const double lifted = passive_off() || off(mjDSBL_GRAVITY) ? 0 : mass * m_.body_gravcomp[b];
  sum.gravcomp += lifted;
  for (int i = 0; i < 3; ++i) {
    sum.moment[at(i)] += mass * com[at(i)];
    sum.gravcomp_moment[at(i)] += lifted * com[at(i)];
    for (int j = 0; j < 3; ++j) {
      double turned = 0;
      for (int k = 0; k < 3; ++k) turned += axes[at(3 * i + k)] * m_.body_inertia[3 * b + k] * axes[at(3 * j + k)];
      sum.about_origin[at(3 * i + j)] += turned + mass * ((i == j ? squared : 0) - com[at(i)] * com[at(j)]);
    }
  }
}

void Importer::finish_mass(BodyRecord& r, const MassSum& sum) {
  Vec3 com{};
  if (sum.mass > 0) {
    for (std::size_t i = 0; i < 3; ++i) com[i] = sum.moment[i] / sum.mass;
  }
  const double squared = mju_dot3(com.data(), com.data());
  const auto about_com = [&](int i, int j) {
    return sum.about_origin[at(3 * i + j)] - sum.mass * ((i == j ? squared : 0) - com[at(i)] * com[at(j)]);
  };
  r.mass = f32(sum.mass);
  put(r.com, com);
  put(r.inertia, std::array<double, 6>{about_com(0, 0), about_com(1, 1), about_com(2, 2), about_com(0, 1),
                                       about_com(0, 2), about_com(1, 2)});
  r.gravcomp_mass = f32(sum.gravcomp);
  if (sum.gravcomp != 0) {
    for (std::size_t i = 0; i < 3; ++i) r.gravcomp_com[i] = f32(sum.gravcomp_moment[i] / sum.gravcomp);
  }
}

void Importer::dofs() {
  for (int d = 0; d < m_.nv; ++d) {
    DofRecord r{};
    r.body = body_of_[at(m_.dof_bodyid[d])];
    r.parent = m_.dof_parentid[d];
    r.armature = f32(m_.dof_armature[d]);
    r.lifted_by_actuators = m_.jnt_actgravcomp[m_.dof_jntid[d]];
    if (!off(mjDSBL_DAMPER)) r.damping = f32(m_.dof_damping[d]);
    r.uncoupled = m_.M_rownnz[d] == 1 && m_.jnt_type[m_.dof_jntid[d]] != mjJNT_FREE;
    out_.pattern_start.push_back(static_cast<int>(out_.pattern.size()));
    std::vector<int> ancestors;
    for (int a = d; a >= 0; a = m_.dof_parentid[a]) ancestors.push_back(a);
    out_.pattern.insert(out_.pattern.end(), ancestors.rbegin(), ancestors.rend());
    out_.dof.push_back(r);
  }
  out_.pattern_start.push_back(static_cast<int>(out_.pattern.size()));
  std::vector<std::vector<int>> below(at(m_.nv));
  for (int d = 0; d < m_.nv; ++d) {
    for (int a = m_.dof_parentid[d]; a >= 0; a = m_.dof_parentid[a]) {
      COHORT_CHECK(d == a + 1 + static_cast<int>(below[at(a)].size()), "dof {} is not next to those below dof {}", d,
                   a);
      below[at(a)].push_back(d);
    }
  }
  for (const std::vector<int>& dofs : below) {
    out_.below_start.push_back(static_cast<int>(out_.below.size()));
    out_.below.insert(out_.below.end(), dofs.begin(), dofs.end());
  }
  out_.below_start.push_back(static_cast<int>(out_.below.size()));
  for (int i = 0; i < m_.nq; ++i) {
    out_.qpos0.push_back(f32(m_.qpos0[i]));
    out_.qpos_spring.push_back(f32(m_.qpos_spring[i]));
  }
}

int Importer::add_frame(int link, const double* pos, const double* quat) {
  FrameRecord r{};
  r.body = body_of_[at(link)];
  Vec3 p = rotate(link_rot_[at(link)], pos);
  for (std::size_t i = 0; i < 3; ++i) p[i] += link_pos_[at(link)][i];
  put(r.pos, p);
  const Mat3 rot = multiply(link_rot_[at(link)], from_quat(quat));
  put(r.rot, rot);
  std::array<double, 4> q, of_link;
  mju_mat2Quat(of_link.data(), link_rot_[at(link)].data());
  mju_mulQuat(q.data(), of_link.data(), quat);
  put(r.quat, q);
  out_.frame.push_back(r);
  return static_cast<int>(out_.frame.size()) - 1;
}

int Importer::add_site(int site) {
  const auto found = site_index_.find(site);
  if (found != site_index_.end()) return found->second;
  return site_index_[site] = add_frame(m_.site_bodyid[site], m_.site_pos + 3 * site, m_.site_quat + 4 * site);
}

void Importer::fluid() {
  put(out_.sizes.option.wind, m_.opt.wind, 3);
  const double viscosity = m_.opt.viscosity, density = m_.opt.density;
  if (passive_off() || (viscosity <= 0 && density <= 0)) return;
  for (int b = 1; b < m_.nbody; ++b) {
    if (m_.body_mass[b] < mjMINVAL || body_of_[at(b)] < 0) continue;
    const mjtNum* inertia = m_.body_inertia + 3 * b;
    // Edges of the box with the link's mass and inertia.
    double box[3];
    for (int i = 0; i < 3; ++i) {
      const double sum = inertia[(i + 1) % 3] + inertia[(i + 2) % 3] - inertia[i];
      box[i] = std::sqrt(std::max(mjMINVAL, sum) / m_.body_mass[b] * 6);
    }
    const double diameter = (box[0] + box[1] + box[2]) / 3;
    FluidRecord r{};
    const LinkRecord& link = out_.link[at(b)];
    r.body = link.body;
    std::copy_n(link.com, 3, r.pos);
    put(r.rot, multiply(link_rot_[at(b)], from_quat(m_.body_iquat + 4 * b)));
    r.angular_linear = f32(std::max(0.0, viscosity) * mjPI * diameter * diameter * diameter);
    r.linear_linear = f32(std::max(0.0, viscosity) * 3 * mjPI * diameter);
    for (int i = 0; i < 3; ++i) {
      const double a = box[(i + 1) % 3], c = box[(i + 2) % 3];
      r.linear_square[i] = f32(0.5 * std::max(0.0, density) * a * c);
      r.angular_square[i] = f32(std::max(0.0, density) * box[i] * (a * a * a * a + c * c * c * c) / 64);
    }
    out_.fluid.push_back(r);
    out_.fluid_link.push_back(b);
  }
}

}  // namespace cohort::sim::mj
