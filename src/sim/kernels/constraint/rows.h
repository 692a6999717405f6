/// Rows of equalities, friction loss and limits, and the collection of all rows.
#pragma once
#include "sim/kernels/constraint/adhesion.h"
#include "sim/kernels/constraint/contacts.h"
#include "sim/kernels/constraint/groups.h"
#include "sim/kernels/smooth/frames.h"
#include "sim/kernels/smooth/smooth.h"
#include "sim/kernels/smooth/transmission.h"

namespace cohort::sim {

/// Connect and weld: the frames' distance, and for welds the vector part of q2^-1 q1 times the torque scale, are zero.
/// Dofs that move both frames stay, because the frames are apart while the constraint is violated. The reference
/// acceleration takes off what the frames' present velocities contribute to their relative acceleration.
/// Reads kinematics, w.vel, w.acc, w.v; writes a new group, c.constrained.
template <class L>
COHORT_KERNEL void frame_equality(const ModelView& m, Workspace<L>& w, Constraints<L>& c, const EqualityRecord& e) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const int dim = equality_dim(e);
  const FrameRecord &f1 = m.frame[e.frame1], &f2 = m.frame[e.frame2];
  const Group g{
      kGroupEquality, dim, e.dof_count, e.first_dof, dim, 0, nullptr, 0, 0, -2 - static_cast<int>(&e - m.equality),
      e.fits};
  const auto piece = open_group(g, c);
  const GroupLayout l = layout_of(g);
  V p1[3], p2[3], R1[9], R2[9], o1[3], o2[3], error[6];
  frame_pose<L>(w, f1, p1, R1);
  frame_pose<L>(w, f2, p2, R2);
  const int root1 = f1.body < 0 ? -1 : m.body[f1.body].root, root2 = f2.body < 0 ? -1 : m.body[f2.body].root;
  reference_point<L>(m, w, f1.body, o1);
  reference_point<L>(m, w, f2.body, o2);
  for (int i = 0; i < 3; ++i) error[i] = (p1[i] - p2[i]) + (root1 == root2 ? zero : o1[i] - o2[i]);
  V p[4] = {zero, zero, zero, zero}, scale = half * V(e.torque_scale);
  if (dim == 6) {
    V q1[4], q2[4];
    frame_quat<L>(w, f1, q1);
    frame_quat<L>(w, f2, q2);
    for (int i = 1; i < 4; ++i) q2[i] = -q2[i];
    multiply_quat(p, q2, q1);
    for (int i = 0; i < 3; ++i) error[3 + i] = V(e.torque_scale) * p[1 + i];
  }
  // The rate of the rotation error for a relative angular velocity a: scale times the vector part of p (R1' a).
  const auto turn_rate = [&](V* out, const V* a) {
    V b[3];
    rotate_back(b, R1, a);
    for (int i = 0; i < 3; ++i) out[i] = p[0] * b[i];
    add_cross(out, p + 1, b);
    for (int i = 0; i < 3; ++i) out[i] *= scale;
  };
  for (int k = 0; k < e.dof_count; ++k) {
    const int d = m.row_dof[e.first_dof + k];
    const float side = m.row_sign[e.first_dof + k];
    V angular[3] = {zero, zero, zero}, l1[3] = {zero, zero, zero}, l2[3] = {zero, zero, zero};
    if (side >= 0) axis_at<L>(w, d, p1, angular, l1);
    if (side <= 0) axis_at<L>(w, d, p2, angular, l2);
    for (int i = 0; i < 3; ++i) piece[i * e.dof_count + k] = l1[i] - l2[i];
    if (dim == 3) continue;
    V turn[3] = {zero, zero, zero};
    if (side != 0) turn_rate(turn, angular);
    for (int i = 0; i < 3; ++i) piece[(3 + i) * e.dof_count + k] = side < 0 ? -turn[i] : turn[i];
  }
  // Accelerations of the frames at zero joint accelerations: gravity stands in both as an upward acceleration.
  V bias[6], angular1[3], angular2[3];
  const auto at_rest = [&](int body, const V* at, V* angular, V* linear) {
    for (int i = 0; i < 3; ++i) angular[i] = linear[i] = zero;
    if (body < 0) return;
    V acc[6];
    read<6>(acc, w.acc + 6 * body);
    for (int i = 0; i < 3; ++i) acc[3 + i] += gravity_of<L>(m, w, i);
    point_acceleration<L>(w, body, acc, at, angular, linear);
  };
  V a1[3], a2[3];
  at_rest(f1.body, p1, angular1, a1);
  at_rest(f2.body, p2, angular2, a2);
  for (int i = 0; i < 3; ++i) bias[i] = a1[i] - a2[i];
  if (dim == 6) {
    V omega1[3], omega2[3], unused[3], alpha[3], difference[3], twist[3], b[3];
    point_velocity<L>(w, f1.body, p1, omega1, unused);
    point_velocity<L>(w, f2.body, p2, omega2, unused);
    for (int i = 0; i < 3; ++i) alpha[i] = angular1[i] - angular2[i], difference[i] = omega1[i] - omega2[i];
    turn_rate(bias + 3, alpha);
    // d/dt (q2^-1 a q1) at constant a: q2^-1 (-|d|^2 / 2, omega1 x omega2) q1 with d = omega1 - omega2.
    const V real = -half * dot3(difference, difference);
    cross(twist, omega1, omega2);
    turn_rate(b, twist);
    for (int i = 0; i < 3; ++i) bias[3 + i] += fma(scale * real, p[1 + i], b[i]);
  }
  V squared = zero;
  for (int i = 0; i < dim; ++i) squared = fma(error[i], error[i], squared);
  const V imp = impedance(e.solver, sqrt(squared));
  const V base = (V(1.0f) - imp) / imp;
  const int ratio = ratio_layout(m).equality + 2 * static_cast<int>(&e - m.equality);
  for (int i = 0; i < dim; ++i) {
    piece[l.weight + i] =
        V(1.0f) / max(base * weight_of<L>(m, w, i < 3 ? e.weight : e.weight_rot, ratio + (i < 3 ? 0 : 1)), V(1e-15f));
    const V vel = row_times<L>(m, g, piece, i, w.v);
    piece[l.aref + i] = -(V(e.solver.damping) * vel) - V(e.solver.stiffness) * imp * error[i] - bias[i];
  }
  c.constrained = c.constrained | (zero == zero);
}

/// Reads as frame_equality, w.q, w.ten_length, w.arm; writes a group for every equality, c.constrained.
template <class L>
COHORT_KERNEL void equality_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int i = 0; i < m.neq; ++i) {
    const EqualityRecord& e = m.equality[i];
    if (e.kind == kEqualityConnect || e.kind == kEqualityWeld) {
      frame_equality<L>(m, w, c, e);
      continue;
    }
    const Group g{kGroupEquality, 1, e.dof_count, e.first_dof, 1, 0, nullptr, 0, 0, -1, e.fits};
    const auto piece = open_group(g, c);
    const bool tendon = e.kind == kEqualityTendon;
    V first, second(0.0f), rate;
    if (tendon) {
      first = w.ten_length[e.object1];
    } else {
      transmission(m, w, e.first_wrap1, e.wrap_count1, first, rate);
    }
    V error = first - V(e.reference1) - V(e.polynomial[0]);
    V slope(0.0f);
    if (e.object2 >= 0) {
      if (tendon) {
        second = w.ten_length[e.object2];
      } else {
        transmission(m, w, e.first_wrap2, e.wrap_count2, second, rate);
      }
      const V x = second - V(e.reference2);
      const float* p = e.polynomial;
      error -= x * fma(x, fma(x, fma(x, V(p[4]), V(p[3])), V(p[2])), V(p[1]));
      slope = fma(x, fma(x, fma(x, V(4 * p[4]), V(3 * p[3])), V(2 * p[2])), V(p[1]));
    }
    for (int k = 0; k < e.wrap_count1; ++k) piece[k] = wrap_arm<L>(m, w, e.first_wrap1 + k);
    for (int k = 0; k < e.wrap_count2; ++k) {
      piece[e.wrap_count1 + k] = -(slope * wrap_arm<L>(m, w, e.first_wrap2 + k));
    }
    finish_row(m, w, c, g, piece, e.solver, weight_of<L>(m, w, e.weight, ratio_layout(m).equality + 2 * i), error,
               error, V(0.0f) == V(0.0f));
  }
}

/// Reads w.v, w.arm; writes a group for every friction loss, c.constrained.
template <class L>
COHORT_KERNEL void friction_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int i = 0; i < m.nfriction; ++i) {
    const FrictionRecord& f = m.friction[i];
    Group g{kGroupFriction, 1, f.dof_count, f.first_dof, 1, 0, nullptr, f.loss, 0, -1, f.fits};
    const bool own = (m.varies & kVariesLoss) != 0;
    if (own) g.own = layout_of(g).size;
    const auto piece = open_group(g, c, own ? 1 : 0);
    if (own) piece[g.own] = w.losses[i];
    for (int k = 0; k < f.dof_count; ++k) {
      piece[k] = f.tendon < 0 ? V(1.0f) : wrap_arm<L>(m, w, m.tendon[f.tendon].first_wrap + k);
    }
    finish_row(m, w, c, g, piece, f.solver, weight_of<L>(m, w, f.inverse_weight, ratio_layout(m).friction + i), V(0.0f),
               V(0.0f), V(0.0f) == V(0.0f));
  }
}

/// Reads w.q, w.v, w.ten_length, w.arm; writes a group for every limit that some lane has reached, c.constrained.
template <class L>
COHORT_KERNEL void limit_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int i = 0; i < m.nlimit; ++i) {
    const LimitRecord& limit = m.limit[i];
    const Group g{kGroupInequality, 1, limit.dof_count, limit.first_dof, 1, 0, nullptr, 0, 0, -1, limit.fits};
    if (limit.kind == 1) {
      V q[4], axis[3];
      read<4>(q, w.q + limit.index);
      normalize_quat(q);
      quat_to_rotation(axis, q);
      const V angle = sqrt(dot3(axis, axis));
      const V d = limit_of<L>(m, w, i, 1) - angle - V(limit.margin);
      const auto on = d < V(0.0f);
      if (!any(on)) continue;
      const auto piece = open_group(g, c);
      const V inverse = V(-1.0f) / max(angle, V(1e-12f));
      for (int k = 0; k < 3; ++k) piece[k] = axis[k] * inverse;
      finish_row(m, w, c, g, piece, limit.solver, weight_of<L>(m, w, limit.inverse_weight, ratio_layout(m).limit + i),
                 d, d, on);
      continue;
    }
    const V value = limit.kind == 0 ? w.q[limit.index] : w.ten_length[limit.index];
    const auto arm = [&](int k) -> V {
      return limit.kind == 0 ? V(1.0f) : wrap_arm<L>(m, w, m.tendon[limit.index].first_wrap + k);
    };
    const V lower = limit_of<L>(m, w, i, 0), upper = limit_of<L>(m, w, i, 1);
    if (L::kWidth > 1 && (m.varies & kVariesLimits) == 0 && limit.upper - limit.lower > 2 * limit.margin) {
      // No lane is at both ends: they share a group.
      const V low = (value - lower) - V(limit.margin), high = (upper - value) - V(limit.margin);
      const auto at_low = low < V(0.0f);
      const V d = select(at_low, low, high);
      const auto on = d < V(0.0f);
      if (!any(on)) continue;
      const auto piece = open_group(g, c);
      for (int k = 0; k < limit.dof_count; ++k) {
        const V a = arm(k);
        piece[k] = select(at_low, a, -a);
      }
      finish_row(m, w, c, g, piece, limit.solver, weight_of<L>(m, w, limit.inverse_weight, ratio_layout(m).limit + i),
                 d, d, on);
      continue;
    }
    for (int side = 0; side < 2; ++side) {
      const V d = (side == 0 ? value - lower : upper - value) - V(limit.margin);
      const auto on = d < V(0.0f);
      if (!any(on)) continue;
      const auto piece = open_group(g, c);
      for (int k = 0; k < limit.dof_count; ++k) {
        const V a = arm(k);
        piece[k] = side == 0 ? a : -a;
      }
      finish_row(m, w, c, g, piece, limit.solver, weight_of<L>(m, w, limit.inverse_weight, ratio_layout(m).limit + i),
                 d, d, on);
    }
  }
}

/// Every group of the present state; c.pool and c.group are the caller's. With adhesion, then what the actuators do.
template <class L>
COHORT_LANE void make_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  c.count = c.pool_used = 0;
  c.contacts = V(0.0f);
  c.constrained = V(0.0f) != V(0.0f);
  equality_rows<L>(m, w, c);
  friction_rows<L>(m, w, c);
  limit_rows<L>(m, w, c);
  contact_rows<L>(m, w, c);
  if (!m.adhesion) return;
  adhesion_arms<L>(m, w, c);
  act<L>(m, w);
}

}  // namespace cohort::sim
