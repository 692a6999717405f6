// From MuJoCo's compiled model to the batched engine's records. Everything here is computed in double and rounded once.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "core/error.h"
#include "sim/model.h"
#include "sim/mujoco/handle.h"
#include "sim/mujoco/unsupported.h"

namespace cohort::sim {

namespace {

using Vec3 = std::array<double, 3>;
using Mat3 = std::array<double, 9>;

constexpr Mat3 kIdentity{1, 0, 0, 0, 1, 0, 0, 0, 1};
/// Below this a component of a unit axis, or an offset in metres, counts as zero.
constexpr double kTiny = 1e-9;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

Mat3 from_quat(const double* q) {
  Mat3 r;
  mju_quat2Mat(r.data(), q);
  return r;
}
Mat3 multiply(const Mat3& a, const Mat3& b) {
  Mat3 r;
  mju_mulMatMat(r.data(), a.data(), b.data(), 3, 3, 3);
  return r;
}
Mat3 transpose(const Mat3& a) {
  return {a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]};
}
Vec3 rotate(const Mat3& a, const double* v) {
  Vec3 r;
  mju_mulMatVec3(r.data(), a.data(), v);
  return r;
}
Vec3 rotate_back(const Mat3& a, const double* v) {
  Vec3 r;
  mju_mulMatTVec3(r.data(), a.data(), v);
  return r;
}
template <std::size_t N>
void put(float* to, const std::array<double, N>& from) {
  for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<float>(from[i]);
}
void put(float* to, const double* from, int n) {
  for (int i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}
float f32(double value) {
  return static_cast<float>(value);
}

/// Index of the coordinate axis that `axis` is, with its sign; -1 when it is none.
int coordinate_axis(const Vec3& axis, double& sign) {
  for (int i = 0; i < 3; ++i) {
    if (std::abs(std::abs(axis[at(i)]) - 1) < kTiny) {
      sign = axis[at(i)] > 0 ? 1 : -1;
      return i;
    }
  }
  return -1;
}

/// A rotation whose third column is `axis` and whose first lies as near to `other` as it can.
Mat3 frame_with_z(const Vec3& axis, const Vec3* other) {
  Vec3 z = axis, x;
  mju_normalize3(z.data());
  const double along = other ? std::abs(mju_dot3(other->data(), z.data())) : 1;
  if (other && along < 0.99) {
    x = *other;
  } else {
    x = {0, 0, 0};
    x[std::abs(z[0]) < 0.6 ? 0 : 1] = 1;
  }
  const double d = mju_dot3(x.data(), z.data());
  for (std::size_t i = 0; i < 3; ++i) x[i] -= d * z[i];
  mju_normalize3(x.data());
  Vec3 y;
  mju_cross(y.data(), z.data(), x.data());
  return {x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]};
}

/// Mass, centre and inertia about it, summed over welded links.
struct MassSum {
  double mass = 0;
  Vec3 moment{};        // sum of mass * position
  Mat3 about_origin{};  // rotational inertia about the body's origin
  double gravcomp = 0;
  Vec3 gravcomp_moment{};
};

class Importer {
 public:
  explicit Importer(const mjModel& m) : m_(m) {
    out_.info = mj::describe(m);
    disabled_ = m.opt.disableflags;
  }

  Model run(int contact_capacity) {
    options();
    bodies();
    dofs();
    tendons_and_actuators();
    limits_and_friction();
    if (!off(mjDSBL_CONTACT) && !off(mjDSBL_CONSTRAINT)) contacts();
    if (!off(mjDSBL_EQUALITY) && !off(mjDSBL_CONSTRAINT)) equalities();
    sizes(contact_capacity);
    return std::move(out_);
  }

 private:
  bool off(int bit) const { return (disabled_ & bit) != 0; }
  bool passive_off() const { return off(mjDSBL_SPRING) && off(mjDSBL_DAMPER); }

  void options() {
    const mjOption& o = m_.opt;
    OptionRecord& r = out_.sizes.option;
    r.timestep = f32(o.timestep);
    if (!off(mjDSBL_GRAVITY)) put(r.gravity, o.gravity, 3);
    r.impratio = f32(o.impratio);
    r.tolerance = f32(o.tolerance);
    r.ls_tolerance = f32(o.ls_tolerance);
    r.scale = f32(1.0 / (m_.stat.meaninertia * std::max<double>(1, static_cast<double>(m_.nv))));
    r.integrator = o.integrator;
    r.elliptic = o.cone == mjCONE_ELLIPTIC;
    r.newton = o.solver == mjSOL_NEWTON;
    r.iterations = o.iterations;
    r.ls_iterations = o.ls_iterations;
    r.warmstart = !off(mjDSBL_WARMSTART);
    r.implicit_damping = !off(mjDSBL_EULERDAMP) && !off(mjDSBL_DAMPER);
    r.clamp_ctrl = !off(mjDSBL_CLAMPCTRL);
    r.actuation = !off(mjDSBL_ACTUATION);
  }

  void bodies() {
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
        add_body(b, body_of_[at(parent)], rot, pos);
        sums.emplace_back();
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
      out_.link.push_back(link);
    }
  }

  void add_body(int b, int parent, const Mat3& rot, const Vec3& pos) {
    const int index = static_cast<int>(out_.body.size());
    body_of_[at(b)] = index;
    BodyRecord r{};
    r.parent = parent;
    r.root = parent < 0 ? index : out_.body[at(parent)].root;
    r.first_joint = static_cast<int>(out_.joint.size());
    r.first_dof = std::max(0, m_.body_dofadr[b]);
    r.dof_count = m_.body_dofnum[b];
    r.mocap = m_.body_mocapid[b];
    const int first = m_.body_jntadr[b], count = m_.body_jntnum[b];
    Mat3 turn = kIdentity;  // the body's frame in the link's
    if (r.mocap >= 0) {
      r.kind = kBodyMocap;
    } else if (m_.jnt_type[first] == mjJNT_FREE) {
      r.kind = kBodyFree;
      r.qpos = m_.jnt_qposadr[first];
    } else if (m_.jnt_type[first] == mjJNT_BALL) {
      r.kind = kBodyBall;
      r.qpos = m_.jnt_qposadr[first];
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
  Mat3 frame_for_joints(int first, int count) const {
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

  void add_joint(int body, int j, const Mat3& turn) {
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

  void add_mass(MassSum& sum, int b) const {
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

  static void finish_mass(BodyRecord& r, const MassSum& sum) {
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

  void dofs() {
    for (int d = 0; d < m_.nv; ++d) {
      DofRecord r{};
      r.body = body_of_[at(m_.dof_bodyid[d])];
      r.parent = m_.dof_parentid[d];
      r.armature = f32(m_.dof_armature[d]);
      if (!off(mjDSBL_DAMPER)) r.damping = f32(m_.dof_damping[d]);
      out_.pattern_start.push_back(static_cast<int>(out_.pattern.size()));
      std::vector<int> ancestors;
      for (int a = d; a >= 0; a = m_.dof_parentid[a]) ancestors.push_back(a);
      out_.pattern.insert(out_.pattern.end(), ancestors.rbegin(), ancestors.rend());
      out_.dof.push_back(r);
    }
    out_.pattern_start.push_back(static_cast<int>(out_.pattern.size()));
    for (int i = 0; i < m_.nq; ++i) {
      out_.qpos0.push_back(f32(m_.qpos0[i]));
      out_.qpos_spring.push_back(f32(m_.qpos_spring[i]));
    }
  }

  /// Reference and impedance as MuJoCo's mj_makeImpedance reads them; `friction` rows have no stiffness.
  SolverRecord solver(const mjtNum* solref, const mjtNum* solimp, bool friction = false) const {
    double ref[2] = {solref[0], solref[1]};
    if ((ref[0] > 0) != (ref[1] > 0)) ref[0] = 0.02, ref[1] = 1;
    if (!off(mjDSBL_REFSAFE) && ref[0] > 0) ref[0] = std::max(ref[0], 2 * m_.opt.timestep);
    const auto impedance = [](double v) { return std::clamp(v, mjMINIMP, mjMAXIMP); };
    const double dmin = impedance(solimp[0]), dmax = impedance(solimp[1]);
    const double width = std::max(0.0, solimp[2]), midpoint = impedance(solimp[3]), power = std::max(1.0, solimp[4]);
    SolverRecord r{};
    if (!friction) {
      r.stiffness = f32(ref[0] > 0 ? 1 / std::max(mjMINVAL, dmax * dmax * ref[0] * ref[0] * ref[1] * ref[1])
                                   : -ref[0] / std::max(mjMINVAL, dmax * dmax));
    }
    r.damping = f32(ref[1] > 0 ? 2 / std::max(mjMINVAL, dmax * ref[0]) : -ref[1] / std::max(mjMINVAL, dmax));
    if (dmin == dmax || width <= mjMINVAL) {
      r.dmin = r.dmax = f32(0.5 * (dmin + dmax));
    } else {
      r.dmin = f32(dmin);
      r.dmax = f32(dmax);
      r.inverse_width = f32(1 / width);
    }
    r.midpoint = f32(midpoint);
    r.power = f32(power);
    return r;
  }

  void limits_and_friction() {
    const bool limits = !off(mjDSBL_LIMIT) && !off(mjDSBL_CONSTRAINT);
    const bool friction = !off(mjDSBL_FRICTIONLOSS) && !off(mjDSBL_CONSTRAINT);
    const auto tendon_dofs = [&](int t) {
      const TendonRecord& r = out_.tendon[at(t)];
      return row_dofs(wrap_dofs(r.first_wrap, r.wrap_count));
    };
    for (int d = 0; d < m_.nv && friction; ++d) {
      if (m_.dof_frictionloss[d] == 0) continue;
      const auto [first, count] = row_dofs({d});
      out_.friction.push_back({-1, first, count, f32(m_.dof_frictionloss[d]), f32(m_.dof_invweight0[d]),
                               solver(m_.dof_solref + mjNREF * d, m_.dof_solimp + mjNIMP * d, true)});
    }
    for (int t = 0; t < m_.ntendon && friction; ++t) {
      if (m_.tendon_frictionloss[t] <= 0) continue;
      const auto [first, count] = tendon_dofs(t);
      out_.friction.push_back({t, first, count, f32(m_.tendon_frictionloss[t]), f32(m_.tendon_invweight0[t]),
                               solver(m_.tendon_solref_fri + mjNREF * t, m_.tendon_solimp_fri + mjNIMP * t, true)});
    }
    for (int j = 0; j < m_.njnt && limits; ++j) {
      const int type = m_.jnt_type[j], dof = m_.jnt_dofadr[j];
      if (!m_.jnt_limited[j] || type == mjJNT_FREE) continue;
      LimitRecord r{};
      r.kind = type == mjJNT_BALL ? 1 : 0;
      r.index = m_.jnt_qposadr[j];
      std::tie(r.first_dof, r.dof_count) = r.kind == 1 ? row_dofs({dof, dof + 1, dof + 2}) : row_dofs({dof});
      r.lower = f32(m_.jnt_range[2 * j]);
      r.upper = f32(r.kind == 1 ? std::max(m_.jnt_range[2 * j], m_.jnt_range[2 * j + 1]) : m_.jnt_range[2 * j + 1]);
      r.margin = f32(m_.jnt_margin[j]);
      r.inverse_weight = f32(m_.dof_invweight0[dof]);
      r.solver = solver(m_.jnt_solref + mjNREF * j, m_.jnt_solimp + mjNIMP * j);
      out_.limit.push_back(r);
    }
    for (int t = 0; t < m_.ntendon && limits; ++t) {
      if (!m_.tendon_limited[t]) continue;
      const auto [first, count] = tendon_dofs(t);
      out_.limit.push_back({2, t, first, count, f32(m_.tendon_range[2 * t]), f32(m_.tendon_range[2 * t + 1]),
                            f32(m_.tendon_margin[t]), f32(m_.tendon_invweight0[t]),
                            solver(m_.tendon_solref_lim + mjNREF * t, m_.tendon_solimp_lim + mjNIMP * t)});
    }
  }

  /// Terms of a fixed tendon, times `factor`; returns (first, count).
  std::pair<int, int> tendon_wraps(int t, double factor) {
    const int first = static_cast<int>(out_.wrap.size());
    for (int k = m_.tendon_adr[t]; k < m_.tendon_adr[t] + m_.tendon_num[t]; ++k) {
      const int j = m_.wrap_objid[k];
      out_.wrap.push_back({m_.jnt_qposadr[j], m_.jnt_dofadr[j], f32(m_.wrap_prm[k] * factor)});
    }
    return {first, m_.tendon_num[t]};
  }
  std::pair<int, int> joint_wrap(int j, double factor) {
    out_.wrap.push_back({m_.jnt_qposadr[j], m_.jnt_dofadr[j], f32(factor)});
    return {static_cast<int>(out_.wrap.size()) - 1, 1};
  }

  void tendons_and_actuators() {
    for (int t = 0; t < m_.ntendon; ++t) {
      TendonRecord r{};
      std::tie(r.first_wrap, r.wrap_count) = tendon_wraps(t, 1);
      if (!off(mjDSBL_SPRING)) r.stiffness = f32(m_.tendon_stiffness[t]);
      if (!off(mjDSBL_DAMPER)) r.damping = f32(m_.tendon_damping[t]);
      r.spring_lower = f32(m_.tendon_lengthspring[2 * t]);
      r.spring_upper = f32(m_.tendon_lengthspring[2 * t + 1]);
      out_.tendon.push_back(r);
    }
    for (int i = 0; i < m_.nactuator; ++i) {
      ActuatorRecord r{};
      r.ctrl = m_.actuator_ctrladr[i];
      r.act = m_.actuator_actnum[i] > 0 ? m_.actuator_actadr[i] : -1;
      const double gear = m_.actuator_gear[6 * m_.actuator_outadr[i]];
      const int target = m_.actuator_trnid[2 * i];
      std::tie(r.first_wrap, r.wrap_count) =
          m_.actuator_trntype[i] == mjTRN_TENDON ? tendon_wraps(target, gear) : joint_wrap(target, gear);
      const double tau = std::max(mjMINVAL, m_.actuator_dynprm[mjNDYN * i]);
      switch (m_.actuator_dyntype[i]) {
        case mjDYN_INTEGRATOR:
          r.dynamics = kDynamicsIntegrator;
          break;
        case mjDYN_FILTER:
          r.dynamics = kDynamicsFilter;
          break;
        case mjDYN_FILTEREXACT:
          r.dynamics = kDynamicsFilterExact;
          r.exact_factor = f32(tau * (1 - std::exp(-m_.opt.timestep / tau)));
          break;
        default:
          r.dynamics = kDynamicsNone;
      }
      r.tau = f32(tau);
      r.act_early = m_.actuator_actearly[i];
      const mjtNum* gain = m_.actuator_gainprm + mjNGAIN * i;
      const mjtNum* bias = m_.actuator_biasprm + mjNBIAS * i;
      put(r.gain, gain, m_.actuator_gaintype[i] == mjGAIN_AFFINE ? 3 : 1);
      if (m_.actuator_biastype[i] == mjBIAS_AFFINE) put(r.bias, bias, 3);
      r.ctrl_limited = m_.actuator_ctrllimited[r.ctrl] && !off(mjDSBL_CLAMPCTRL);
      r.ctrl_lower = f32(m_.actuator_ctrlrange[2 * r.ctrl]);
      r.ctrl_upper = f32(m_.actuator_ctrlrange[2 * r.ctrl + 1]);
      r.force_limited = m_.actuator_forcelimited[i];
      r.force_lower = f32(m_.actuator_forcerange[2 * i]);
      r.force_upper = f32(m_.actuator_forcerange[2 * i + 1]);
      r.act_limited = m_.actuator_actlimited[i];
      r.act_lower = f32(m_.actuator_actrange[2 * i]);
      r.act_upper = f32(m_.actuator_actrange[2 * i + 1]);
      out_.actuator.push_back(r);
    }
  }

  int add_geom(int g) {
    const auto found = geom_index_.find(g);
    if (found != geom_index_.end()) return found->second;
    GeomRecord r{};
    const int link = m_.geom_bodyid[g];
    r.shape = m_.geom_type[g];
    r.body = body_of_[at(link)];
    Vec3 pos = rotate(link_rot_[at(link)], m_.geom_pos + 3 * g);
    for (std::size_t i = 0; i < 3; ++i) pos[i] += link_pos_[at(link)][i];
    put(r.pos, pos);
    put(r.rot, multiply(link_rot_[at(link)], from_quat(m_.geom_quat + 4 * g)));
    put(r.size, m_.geom_size + 3 * g, 3);
    r.radius = f32(m_.geom_rbound[g]);
    out_.geom.push_back(r);
    const int index = static_cast<int>(out_.geom.size()) - 1;
    geom_index_[g] = index;
    return index;
  }

  /// Dofs that move link2 against link1: the two chains without what they share.
  std::pair<int, int> relative_dofs(int link1, int link2) {
    const auto chain = [&](int link) {
      std::vector<int> dofs;
      int b = link;
      while (b > 0 && m_.body_dofnum[b] == 0) b = m_.body_parentid[b];
      if (b > 0) {
        for (int d = m_.body_dofadr[b] + m_.body_dofnum[b] - 1; d >= 0; d = m_.dof_parentid[d]) dofs.push_back(d);
      }
      return dofs;
    };
    std::map<int, float> sign;
    for (int d : chain(link1)) sign[d] = -1;
    for (int d : chain(link2)) {
      if (sign.count(d)) {
        sign.erase(d);
      } else {
        sign[d] = 1;
      }
    }
    const int first = static_cast<int>(out_.row_dof.size());
    for (const auto& [dof, s] : sign) {
      out_.row_dof.push_back(dof);
      out_.row_sign.push_back(s);
    }
    return {first, static_cast<int>(sign.size())};
  }

  /// Dofs of a row that is not a contact's.
  std::pair<int, int> row_dofs(const std::vector<int>& dofs) {
    const int first = static_cast<int>(out_.row_dof.size());
    for (int d : dofs) {
      out_.row_dof.push_back(d);
      out_.row_sign.push_back(1);
    }
    return {first, static_cast<int>(dofs.size())};
  }
  std::vector<int> wrap_dofs(int first, int count) const {
    std::vector<int> dofs;
    for (int k = first; k < first + count; ++k) dofs.push_back(out_.wrap[at(k)].dof);
    return dofs;
  }
  /// True when any two of the dofs are ancestor and descendant.
  bool on_one_chain(int first, int count) const {
    for (int k = first + 1; k < first + count; ++k) {
      const int d = out_.row_dof[at(k)], before = out_.row_dof[at(k - 1)];
      bool found = false;
      for (int a = d; a >= 0; a = m_.dof_parentid[a]) found = found || a == before;
      if (!found) return false;
    }
    return true;
  }

  void contacts() {
    for (const mj::CandidatePair& c : mj::candidate_pairs(m_)) {
      const int g1 = c.geom1, g2 = c.geom2, l1 = m_.geom_bodyid[g1], l2 = m_.geom_bodyid[g2];
      PairRecord r{};
      std::tie(r.first_dof, r.dof_count) = relative_dofs(l1, l2);
      if (r.dof_count == 0) continue;
      r.geom1 = add_geom(g1);
      r.geom2 = add_geom(g2);
      r.kernel = mj::pair_kernel(m_.geom_type[g1], m_.geom_type[g2]);
      r.max_contacts = mj::pair_contacts(r.kernel);
      r.weight_tran = f32(m_.body_invweight0[2 * l1] + m_.body_invweight0[2 * l2]);
      r.weight_rot = f32(m_.body_invweight0[2 * l1 + 1] + m_.body_invweight0[2 * l2 + 1]);
      if (c.pair >= 0) {
        explicit_parameters(r, c.pair);
      } else {
        mixed_parameters(r, g1, g2);
      }
      r.mu = f32(r.friction[0] / std::sqrt(std::max(mjMINVAL, m_.opt.impratio)));
      r.fits = on_one_chain(r.first_dof, r.dof_count);
      out_.pair.push_back(r);
    }
  }

  void explicit_parameters(PairRecord& r, int p) const {
    r.dim = m_.pair_dim[p];
    r.margin = f32(m_.pair_margin[p]);
    r.gap = f32(m_.pair_gap[p]);
    for (int i = 0; i < 5; ++i) r.friction[i] = f32(std::max(mjMINMU, m_.pair_friction[5 * p + i]));
    r.solver = solver(m_.pair_solref + mjNREF * p, m_.pair_solimp + mjNIMP * p);
    const mjtNum* tangential = m_.pair_solreffriction + mjNREF * p;
    const bool own = (tangential[0] > 0) == (tangential[1] > 0) && (tangential[0] != 0 || tangential[1] != 0);
    r.friction_damping = own ? solver(tangential, m_.pair_solimp + mjNIMP * p).damping : r.solver.damping;
  }

  /// Contact parameters of two geoms: priority, then solmix, as MuJoCo's documentation of contact parameters says.
  void mixed_parameters(PairRecord& r, int g1, int g2) const {
    r.margin = f32(m_.geom_margin[g1] + m_.geom_margin[g2]);
    r.gap = f32(m_.geom_gap[g1] + m_.geom_gap[g2]);
    double solref[mjNREF], solimp[mjNIMP], friction[3];
    if (m_.geom_priority[g1] != m_.geom_priority[g2]) {
      const int g = m_.geom_priority[g1] > m_.geom_priority[g2] ? g1 : g2;
      r.dim = m_.geom_condim[g];
      std::copy_n(m_.geom_solref + mjNREF * g, mjNREF, solref);
      std::copy_n(m_.geom_solimp + mjNIMP * g, mjNIMP, solimp);
      std::copy_n(m_.geom_friction + 3 * g, 3, friction);
    } else {
      r.dim = std::max(m_.geom_condim[g1], m_.geom_condim[g2]);
      const double mix1 = m_.geom_solmix[g1], mix2 = m_.geom_solmix[g2];
      double mix = mix1 < mjMINVAL ? 0.0 : 1.0;
      if (mix1 >= mjMINVAL && mix2 >= mjMINVAL) mix = mix1 / (mix1 + mix2);
      if (mix1 < mjMINVAL && mix2 < mjMINVAL) mix = 0.5;
      const mjtNum *ref1 = m_.geom_solref + mjNREF * g1, *ref2 = m_.geom_solref + mjNREF * g2;
      for (int i = 0; i < mjNREF; ++i) {
        solref[i] = ref1[0] > 0 && ref2[0] > 0 ? mix * ref1[i] + (1 - mix) * ref2[i] : std::min(ref1[i], ref2[i]);
      }
      for (int i = 0; i < mjNIMP; ++i) {
        solimp[i] = mix * m_.geom_solimp[mjNIMP * g1 + i] + (1 - mix) * m_.geom_solimp[mjNIMP * g2 + i];
      }
      for (int i = 0; i < 3; ++i) friction[i] = std::max(m_.geom_friction[3 * g1 + i], m_.geom_friction[3 * g2 + i]);
    }
    const int which[5] = {0, 0, 1, 2, 2};
    for (int i = 0; i < 5; ++i) r.friction[i] = f32(std::max(mjMINMU, friction[which[i]]));
    r.solver = solver(solref, solimp);
    r.friction_damping = r.solver.damping;
  }

  void equalities() {
    for (int i = 0; i < m_.neq; ++i) {
      EqualityRecord r{};
      const mjtNum* data = m_.eq_data + mjNEQDATA * i;
      const int o1 = m_.eq_obj1id[i], o2 = m_.eq_obj2id[i];
      const bool joint = m_.eq_type[i] == mjEQ_JOINT;
      r.kind = joint ? kEqualityJoint : kEqualityTendon;
      std::tie(r.first_wrap1, r.wrap_count1) = joint ? joint_wrap(o1, 1) : tendon_wraps(o1, 1);
      r.reference1 = f32(joint ? m_.qpos0[m_.jnt_qposadr[o1]] : m_.tendon_length0[o1]);
      r.weight = f32(joint ? m_.dof_invweight0[m_.jnt_dofadr[o1]] : m_.tendon_invweight0[o1]);
      if (o2 >= 0) {
        std::tie(r.first_wrap2, r.wrap_count2) = joint ? joint_wrap(o2, 1) : tendon_wraps(o2, 1);
        r.reference2 = f32(joint ? m_.qpos0[m_.jnt_qposadr[o2]] : m_.tendon_length0[o2]);
        r.weight += f32(joint ? m_.dof_invweight0[m_.jnt_dofadr[o2]] : m_.tendon_invweight0[o2]);
      }
      put(r.polynomial, data, 5);
      std::vector<int> dofs = wrap_dofs(r.first_wrap1, r.wrap_count1);
      for (int d : wrap_dofs(r.first_wrap2, r.wrap_count2)) dofs.push_back(d);
      std::tie(r.first_dof, r.dof_count) = row_dofs(dofs);
      r.solver = solver(m_.eq_solref + mjNREF * i, m_.eq_solimp + mjNIMP * i);
      out_.equality.push_back(r);
    }
  }

  void sizes(int contact_capacity) {
    ModelView& v = out_.sizes;
    const auto size = [](const auto& items) { return static_cast<int>(items.size()); };
    v.nq = static_cast<int>(m_.nq), v.nv = static_cast<int>(m_.nv), v.nu = static_cast<int>(m_.nu);
    v.na = static_cast<int>(m_.na), v.nmocap = static_cast<int>(m_.nmocap);
    v.nbody = size(out_.body), v.njnt = size(out_.joint), v.nlink = size(out_.link), v.nlimit = size(out_.limit);
    v.nfriction = size(out_.friction), v.nwrap = size(out_.wrap), v.ntendon = size(out_.tendon);
    v.nact = size(out_.actuator), v.ngeom = size(out_.geom), v.npair = size(out_.pair);
    v.nrowdof = size(out_.row_dof), v.neq = size(out_.equality), v.npattern = size(out_.pattern);
    v.damped = std::any_of(out_.dof.begin(), out_.dof.end(), [](const DofRecord& d) { return d.damping > 0; });
    int most = 0;
    for (const PairRecord& p : out_.pair) most += p.max_contacts;
    v.contact_capacity = contact_capacity > 0 ? std::min(contact_capacity, most) : most;
  }

  const mjModel& m_;
  Model out_;
  int disabled_ = 0;
  std::vector<int> body_of_;  // per link
  std::vector<Mat3> link_rot_;
  std::vector<Vec3> link_pos_;
  std::map<int, int> geom_index_;
};

}  // namespace

std::vector<Unsupported> find_unsupported(std::span<const std::uint8_t> mjb) {
  return mj::find_unsupported(*mj::load(mjb));
}

Model import_model(std::span<const std::uint8_t> mjb, int contact_capacity) {
  const mj::ModelPtr model = mj::load(mjb);
  const std::vector<Unsupported> missing = mj::find_unsupported(*model);
  COHORT_THROW_UNLESS(
      missing.empty(),
      "the batched engine does not run this model: {}. The engine `mujoco` runs it (SceneOptions::engine, "
      "--engine mujoco)",
      to_string(missing));
  return Importer(*model).run(contact_capacity);
}

}  // namespace cohort::sim
