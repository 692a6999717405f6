/// Passive forces: springs and dampers of joints and tendons, drag of a fluid (MuJoCo's documentation, "Passive
/// forces").
#pragma once
#include "sim/kernels/lane/parameters.h"
#include "sim/kernels/lane/workspace.h"
#include "sim/kernels/smooth/frames.h"
#include "sim/kernels/smooth/transmission.h"

namespace cohort::sim {

/// Springs of free and ball joints: they pull towards qpos_spring, rotations along the shortest turn.
/// Reads w.q; changes w.smooth.
template <class L>
COHORT_KERNEL void body_springs(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  for (int b = 0; b < m.nbody; ++b) {
    const BodyRecord& body = m.body[b];
    if (body.stiffness == 0 || (body.kind != kBodyFree && body.kind != kBodyBall)) continue;
    const V pull(-body.stiffness);
    int at = body.qpos, dof = body.first_dof;
    if (body.kind == kBodyFree) {
      for (int i = 0; i < 3; ++i) {
        w.smooth[dof + i] = fma(pull, w.q[at + i] - V(m.qpos_spring[at + i]), w.smooth[dof + i]);
      }
      at += 3, dof += 3;
    }
    V q[4], back[4], turn[3];
    read<4>(q, w.q + at);
    normalize_quat(q);
    for (int i = 0; i < 4; ++i) back[i] = V(i == 0 ? m.qpos_spring[at] : -m.qpos_spring[at + i]);
    multiply_quat(back, back, q);
    quat_to_rotation(turn, back);
    for (int i = 0; i < 3; ++i) w.smooth[dof + i] = fma(pull, turn[i], w.smooth[dof + i]);
  }
}

/// Velocity of a link in the axes of its inertia, less the wind.
template <class L>
COHORT_LANE void fluid_velocity(const ModelView& m, const Workspace<L>& w, const FluidRecord& f, typename L::V* rot,
                                typename L::V* p, typename L::V* angular, typename L::V* linear) {
  using V = typename L::V;
  V R[9], x[3], o[3], v[3];
  read<9>(R, w.rot + 9 * f.body);
  read<3>(x, w.pos + 3 * f.body);
  rotate(p, R, f.pos);
  for (int i = 0; i < 3; ++i) p[i] += x[i];
  multiply3(rot, R, f.rot);
  point_velocity<L>(w, f.body, p, o, v);
  for (int i = 0; i < 3; ++i) v[i] -= V(m.option.wind[i]);
  rotate_back(angular, rot, o);
  rotate_back(linear, rot, v);
}

/// Subtracts the drag of every link from w.force, before the bias forces are summed up the tree.
/// Reads kinematics, w.vel; changes w.force.
template <class L>
COHORT_KERNEL void fluid_forces(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  for (int k = 0; k < m.nfluid; ++k) {
    const FluidRecord& f = m.fluid[k];
    V rot[9], p[3], o[3], v[3], torque[3], force[3];
    fluid_velocity<L>(m, w, f, rot, p, o, v);
    const Drag<V> drag = drag_of<L>(m, w, k);
    for (int i = 0; i < 3; ++i) {
      torque[i] = -(o[i] * fma(drag.angular_square[i], abs(o[i]), drag.angular_linear));
      force[i] = -(v[i] * fma(drag.linear_square[i], abs(v[i]), drag.linear_linear));
    }
    rotate(torque, rot, torque);
    rotate(force, rot, force);
    add_cross(torque, p, force);
    const auto to = w.force + 6 * f.body;
    for (int i = 0; i < 3; ++i) to[i] -= torque[i], to[3 + i] -= force[i];
  }
}

/// Adds springs, dampers and the applied forces to w.smooth.
/// Reads w.q, w.v, w.applied, w.arm, w.ten_length, w.ten_velocity; changes w.smooth.
template <class L>
COHORT_KERNEL void passive(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int d = 0; d < m.nv; ++d) w.smooth[d] = fma(-damping_of<L>(m, w, d), w.v[d], w.smooth[d] + w.applied[d]);
  for (int j = 0; j < m.njnt; ++j) {
    const JointRecord& joint = m.joint[j];
    if ((m.varies & kVariesStiffness) == 0 && joint.stiffness == 0) continue;
    w.smooth[joint.dof] = fma(-stiffness_of<L>(m, w, j), w.q[joint.qpos] - V(joint.spring_qpos), w.smooth[joint.dof]);
  }
  body_springs<L>(m, w);
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    const V length = w.ten_length[t], rate = w.ten_velocity[t];
    if (tendon.stiffness == 0 && tendon.damping == 0) continue;
    const V above = max(length - V(tendon.spring_upper), zero), below = min(length - V(tendon.spring_lower), zero);
    const V force = -(V(tendon.stiffness) * (above + below)) - V(tendon.damping) * rate;
    for (int k = tendon.first_wrap; k < tendon.first_wrap + tendon.wrap_count; ++k) {
      w.smooth[m.wrap[k].dof] = fma(wrap_arm<L>(m, w, k), force, w.smooth[m.wrap[k].dof]);
    }
  }
}

}  // namespace cohort::sim
