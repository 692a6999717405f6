/// Integrators: semi-implicit Euler with implicit joint damping, implicitfast, fourth-order Runge-Kutta (MuJoCo's
/// documentation, "Numerical integration").
#pragma once
#include "sim/kernels/lane/spatial.h"
#include "sim/kernels/lane/workspace.h"
#include "sim/kernels/smooth/actuation.h"
#include "sim/kernels/smooth/factor.h"
#include "sim/kernels/smooth/passive.h"

namespace cohort::sim {

/// q := q moved by h along the velocity v.
template <class L>
COHORT_KERNEL void move_coordinates(const ModelView& m, typename L::Ptr q, typename L::Ptr v, float h) {
  using V = typename L::V;
  for (int b = 0; b < m.nbody; ++b) {
    const BodyRecord& body = m.body[b];
    for (int j = body.first_joint; j < body.first_joint + body.joint_count; ++j) {
      q[m.joint[j].qpos] = fma(V(h), v[m.joint[j].dof], q[m.joint[j].qpos]);
    }
    if (body.kind != kBodyFree && body.kind != kBodyBall) continue;
    int at = body.qpos, dof = body.first_dof;
    if (body.kind == kBodyFree) {
      for (int i = 0; i < 3; ++i) q[at + i] = fma(V(h), v[dof + i], q[at + i]);
      at += 3, dof += 3;
    }
    V rotation[4], o[3], r[4];
    read<4>(rotation, q + at);
    read<3>(o, v + dof);
    normalize_quat(rotation);
    const V speed = sqrt(dot3(o, o));
    V s, c;
    sincos(speed * V(0.5f * h), s, c);
    const V scale = select(speed > V(1e-15f), s / max(speed, V(1e-15f)), V(0.5f * h));
    r[0] = c;
    for (int i = 0; i < 3; ++i) r[1 + i] = o[i] * scale;
    multiply_quat(rotation, rotation, r);
    normalize_quat(rotation);
    write<4>(q + at, rotation);
  }
}

/// v := the rates by which the orientations of q move in the frames of `start`, from which they have turned by r:
/// v + r x v / 2 + r x (r x v) (1 / 12 + |r|^2 / 720) (Munthe-Kaas 1998, "Runge-Kutta methods on Lie groups"), as
/// MuJoCo has it since 4.0. Without it ball and free joints would lose RK4's order. Other coordinates' rates are their
/// velocities.
template <class L>
COHORT_KERNEL void turn_rates(const ModelView& m, typename L::Ptr start, typename L::Ptr q, typename L::Ptr v) {
  using V = typename L::V;
  for (int b = 0; b < m.nbody; ++b) {
    const BodyRecord& body = m.body[b];
    if (body.kind != kBodyFree && body.kind != kBodyBall) continue;
    const int skip = body.kind == kBodyFree ? 3 : 0, at = body.qpos + skip, dof = body.first_dof + skip;
    V from[4], to[4], turned[4], r[3], o[3], first[3], second[3];
    read<4>(from, start + at);
    read<4>(to, q + at);
    normalize_quat(from);
    for (int i = 1; i < 4; ++i) from[i] = -from[i];
    multiply_quat(turned, from, to);
    quat_to_rotation(r, turned);
    read<3>(o, v + dof);
    for (int i = 0; i < 3; ++i) first[i] = second[i] = V(0.0f);
    add_cross(first, r, o);
    add_cross(second, r, first);
    const V share = fma(V(1.0f / 720.0f), dot3(r, r), V(1.0f / 12.0f));
    for (int i = 0; i < 3; ++i) v[dof + i] = fma(share, second[i], fma(V(0.5f), first[i], o[i]));
  }
}

/// Adds -h (J' b J) to w.factor for a row J with the dofs [first, first + count) of m.wrap, as far as MuJoCo's inertia
/// matrix has the entries; `arm(k)` is J's entry at wrap k.
template <class L, class Arm>
COHORT_LANE void add_rank_one(const ModelView& m, Workspace<L>& w, int first, int count, typename L::V b, Arm arm) {
  using V = typename L::V;
  const V h(m.option.timestep);
  for (int k = first; k < first + count; ++k) {
    for (int e = first; e < first + count; ++e) {
      const int i = m.wrap[k].dof, j = m.wrap[e].dof;
      if (j > i || (j < i && m.dof[i].uncoupled)) continue;
      bool stored = false;
      for (int c = m.pattern_start[i]; c < m.pattern_start[i + 1]; ++c) stored = stored || m.pattern[c] == j;
      if (!stored) continue;
      const auto entry = w.factor + triangle(i, j);
      entry[0] = fma(-h * b, arm(k) * arm(e), entry[0]);
    }
  }
}

/// out = R diag(scale) R', symmetric.
template <class V>
COHORT_LANE void scaled_axes(V* out, const V* R, const V* scale) {
  for (int i = 0; i < 3; ++i) {
    const V row[3] = {R[3 * i] * scale[0], R[3 * i + 1] * scale[1], R[3 * i + 2] * scale[2]};
    for (int j = 0; j <= i; ++j) out[3 * i + j] = out[3 * j + i] = dot3(row, R + 3 * j);
  }
}

/// Adds the derivatives of the drag by the velocity, times -h, to w.factor.
/// Reads kinematics, w.vel; changes w.factor.
template <class L>
COHORT_KERNEL void add_fluid_damping(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V h(m.option.timestep);
  for (int f = 0; f < m.nfluid; ++f) {
    const FluidRecord& fluid = m.fluid[f];
    V rot[9], p[3], o[3], v[3], turn[3], drag[3];
    fluid_velocity<L>(m, w, fluid, rot, p, o, v);
    const Drag<V> factors = drag_of<L>(m, w, f);
    for (int i = 0; i < 3; ++i) {
      turn[i] = h * fma(V(2.0f) * factors.angular_square[i], abs(o[i]), factors.angular_linear);
      drag[i] = h * fma(V(2.0f) * factors.linear_square[i], abs(v[i]), factors.linear_linear);
    }
    // Both in the world's axes: what a turn and a motion of the link's middle are met with.
    V against_turn[9], against_motion[9];
    scaled_axes(against_turn, rot, turn);
    scaled_axes(against_motion, rot, drag);
    // The last dof that moves the body: its row of the pattern is the body's chain.
    int b = fluid.body;
    while (b >= 0 && m.body[b].dof_count == 0) b = m.body[b].parent;
    if (b < 0) continue;
    const int last = m.body[b].first_dof + m.body[b].dof_count - 1;
    for (int x = m.pattern_start[last]; x < m.pattern_start[last + 1]; ++x) {
      const int i = m.pattern[x];
      V a[3], l[3], torque[3], force[3];
      axis_at<L>(w, i, p, a, l);
      rotate(torque, against_turn, a);
      rotate(force, against_motion, l);
      add_cross(torque, p, force);
      for (int y = m.pattern_start[last]; y <= x; ++y) {
        const int j = m.pattern[y];
        if (j < i && m.dof[i].uncoupled) continue;
        const auto axis = w.axis + 6 * j;
        const auto entry = w.factor + triangle(i, j);
        V sum = entry[0];
        for (int k = 0; k < 3; ++k) sum = fma(axis[3 + k], force[k], fma(axis[k], torque[k], sum));
        entry[0] = sum;
      }
    }
  }
}

/// Free bodies that no joint hangs on under implicitfast: the derivative of the centrifugal and gyroscopic force by the
/// angular velocity, which is not symmetric, joins their six rows of w.factor (M - h D, not yet factored); their six
/// of w.scratch are solved for by elimination. The matrix is the inertia plus terms of the size of h times velocity, so
/// that no pivoting is needed.
/// Reads w.rot, w.v, w.factor; changes w.scratch.
template <class L>
COHORT_KERNEL void solve_free_body(const ModelView& m, Workspace<L>& w, const BodyRecord& body) {
  using V = typename L::V;
  const V h(m.option.timestep);
  const int first = body.first_dof;
  V A[6][7];
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j <= i; ++j) A[i][j] = A[j][i] = w.factor[triangle(first + i, first + j)];
    A[i][6] = w.scratch[first + i];
  }
  const int index = static_cast<int>(&body - m.body);
  const BodyMass<V> own = mass_of<L>(m, w, index);
  // In the body's axes, as the angular velocity is.
  const V(&I)[6] = own.inertia;
  const V J[9] = {I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2]};
  const V* const s = own.com;
  V o[3], Jo[3], os[3], R[9];
  read<3>(o, w.v + (first + 3));
  rotate(Jo, J, o);
  cross(os, o, s);
  read<9>(R, w.rot + 9 * index);
  const float* com = body.com;
  const bool centred = !(m.varies & kVariesMass) && com[0] == 0 && com[1] == 0 && com[2] == 0;
  for (int c = 0; c < 3; ++c) {
    // The force is quadratic in the angular velocity: its derivative along the axis c is the sum of both mixed
    // products.
    const V zero(0.0f), axis[3] = {V(c == 0 ? 1.0f : 0.0f), V(c == 1 ? 1.0f : 0.0f), V(c == 2 ? 1.0f : 0.0f)};
    V turn[3] = {zero, zero, zero};
    add_cross(turn, o, J + 3 * c);
    add_cross(turn, axis, Jo);
    if (!centred) {
      V lever[3], pull[3];
      cross(lever, axis, s);
      cross(pull, o, lever);
      add_cross(pull, axis, os);
      for (V& x : pull) x *= own.mass;
      add_cross(turn, s, pull);
      rotate(pull, R, pull);
      for (int i = 0; i < 3; ++i) A[i][3 + c] = fma(h, pull[i], A[i][3 + c]);
    }
    for (int i = 0; i < 3; ++i) A[3 + i][3 + c] = fma(h, turn[i], A[3 + i][3 + c]);
  }
  V inverse[6], x[6];
  for (int k = 0; k < 6; ++k) {
    inverse[k] = V(1.0f) / A[k][k];
    for (int i = k + 1; i < 6; ++i) {
      const V factor = A[i][k] * inverse[k];
      for (int j = k + 1; j < 7; ++j) A[i][j] = fma(-factor, A[k][j], A[i][j]);
    }
  }
  for (int k = 5; k >= 0; --k) {
    V sum = A[k][6];
    for (int j = k + 1; j < 6; ++j) sum = fma(-A[k][j], x[j], sum);
    w.scratch[first + k] = x[k] = sum * inverse[k];
  }
}

/// w.scratch := the acceleration that the velocity advances with, for Euler and implicitfast. Uses w.factor. solved:
/// lanes whose constraints were solved to the tolerance.
/// Reads w.mass, w.smooth, w.constraint, w.qacc, w.actuator_slope, kinematics; writes w.scratch, overwrites w.factor.
template <class L>
COHORT_KERNEL void implicit_acceleration(const ModelView& m, Workspace<L>& w, typename L::M solved) {
  using V = typename L::V;
  const bool fast = m.option.integrator == kImplicitFast;
  if (!fast && !(m.option.implicit_damping && (m.damped || (m.varies & kVariesDamping)))) {
    for (int d = 0; d < m.nv; ++d) w.scratch[d] = w.qacc[d];
    return;
  }
  const Pattern<L> p{m.pattern, m.pattern_start};
  const V h(m.option.timestep);
  // The force: M qacc. The forces of stiff rows, which are differences of large numbers, would lose digits.
  if (any(solved)) multiply_symmetric<L>(m.nv, p, w.mass, w.qacc, w.scratch);
  copy_matrix<L>(m.nv, p, w.mass, w.factor);
  for (int d = 0; d < m.nv; ++d) {
    const auto diagonal = w.factor + triangle(d, d);
    diagonal[0] = fma(h, damping_of<L>(m, w, d), diagonal[0]);
    w.scratch[d] = select(solved, w.scratch[d], w.smooth[d] + w.constraint[d]);
  }
  if (fast) {
    for (int t = 0; t < m.ntendon; ++t) {
      const TendonRecord& tendon = m.tendon[t];
      if (tendon.damping == 0) continue;
      add_rank_one<L>(m, w, tendon.first_wrap, tendon.wrap_count, V(-tendon.damping),
                      [&](int k) { return wrap_arm<L>(m, w, k); });
    }
    for (int i = 0; i < m.nact; ++i) {
      const ActuatorRecord& a = m.actuator[i];
      if (!(m.varies & kVariesGain) && a.gain[2] == 0 && a.bias[2] == 0 && a.muscle < 0) continue;
      add_rank_one<L>(m, w, a.first_wrap, a.wrap_count, w.actuator_slope[i],
                      [&](int k) { return wrap_arm<L>(m, w, k); });
    }
    if (m.nfluid > 0) add_fluid_damping<L>(m, w);
  }
  // What lies between the bodies that are solved alone.
  int begin = 0;
  const auto solve_to = [&](int end) {
    if (begin >= end) return;
    factor_in_place<L>(end, p, w.factor, begin);
    solve_in_place<L>(end, p, w.factor, w.scratch, begin);
  };
  for (int b = 0; b < m.nbody && fast; ++b) {
    const BodyRecord& body = m.body[b];
    if (!body.stands_alone) continue;
    solve_free_body<L>(m, w, body);
    solve_to(body.first_dof);
    begin = body.first_dof + 6;
  }
  solve_to(m.nv);
}

/// Advances activations, then w.v by `acceleration`, then w.q with `velocity`, or with the new w.v where that is null.
template <class L>
COHORT_LANE void advance(const ModelView& m, Workspace<L>& w, typename L::Ptr rates, typename L::Ptr acceleration,
                         bool own_velocity, typename L::Ptr velocity) {
  using V = typename L::V;
  if (m.option.actuation) {
    for (int i = 0; i < m.nact; ++i) {
      const ActuatorRecord& a = m.actuator[i];
      if (a.act < 0) continue;
      const V next = next_activation<L>(m, a, w.act[a.act], rates[a.act]);
      w.act[a.act] = nearest_turn<L>(m, w, i, next, w.actuator_length[i]);
    }
  }
  for (int d = 0; d < m.nv; ++d) w.v[d] = fma(V(m.option.timestep), acceleration[d], w.v[d]);
  move_coordinates<L>(m, w.q, own_velocity ? velocity : w.v, m.option.timestep);
}

/// A fourth-order Runge-Kutta step begins.
/// Reads w.q, w.v, w.act; writes w.rk_start, w.rk_sum.
template <class L>
COHORT_KERNEL void begin_stages(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const int nq = m.nq, nv = m.nv, na = m.na;
  const auto start = w.rk_start;
  for (int i = 0; i < nq; ++i) start[i] = w.q[i];
  for (int i = 0; i < nv; ++i) start[nq + i] = w.v[i];
  for (int i = 0; i < na; ++i) start[nq + nv + i] = w.act[i];
  for (int i = 0; i < 2 * nv + na; ++i) w.rk_sum[i] = V(0.0f);
}

/// Adds the rates of `stage` (0 .. 3), whose w.qacc, w.act_dot are computed; before the last one, goes on to the next
/// one's state.
/// Reads w.qacc, w.act_dot, w.rk_start; changes w.rk_sum, w.q, w.v, w.act; uses w.scratch.
template <class L>
COHORT_KERNEL void add_stage(const ModelView& m, Workspace<L>& w, int stage) {
  using V = typename L::V;
  const int nq = m.nq, nv = m.nv, na = m.na;
  const auto start = w.rk_start, sum = w.rk_sum, rate_v = sum + nv, rate_act = sum + 2 * nv;
  const float inner[3] = {0.5f, 0.5f, 1.0f};
  const float weight[4] = {1.0f / 6.0f, 1.0f / 3.0f, 1.0f / 3.0f, 1.0f / 6.0f};
  const V b(weight[stage]);
  for (int i = 0; i < nv; ++i) w.scratch[i] = w.v[i];
  if (stage > 0) turn_rates<L>(m, start, w.q, w.scratch);
  for (int i = 0; i < nv; ++i) {
    sum[i] = fma(b, w.scratch[i], sum[i]);
    rate_v[i] = fma(b, w.qacc[i], rate_v[i]);
  }
  for (int i = 0; i < na; ++i) rate_act[i] = fma(b, w.act_dot[i], rate_act[i]);
  if (stage == 3) return;
  // Start moved along this stage's rates.
  const float step = m.option.timestep * inner[stage];
  for (int i = 0; i < nq; ++i) w.q[i] = start[i];
  move_coordinates<L>(m, w.q, w.scratch, step);
  for (int i = 0; i < nv; ++i) w.v[i] = fma(V(step), w.qacc[i], start[nq + i]);
  for (int i = 0; i < na; ++i) w.act[i] = fma(V(step), w.act_dot[i], start[nq + nv + i]);
}

/// Steps along the sum of the stages' rates.
/// Reads w.rk_start, w.rk_sum; writes w.q, w.v, w.act.
template <class L>
COHORT_KERNEL void end_stages(const ModelView& m, Workspace<L>& w) {
  const int nq = m.nq, nv = m.nv, na = m.na;
  const auto start = w.rk_start, sum = w.rk_sum;
  for (int i = 0; i < nq; ++i) w.q[i] = start[i];
  for (int i = 0; i < nv; ++i) w.v[i] = start[nq + i];
  for (int i = 0; i < na; ++i) w.act[i] = start[nq + nv + i];
  advance<L>(m, w, sum + 2 * nv, sum + nv, true, sum);
}

/// One step by Euler or implicitfast from the state whose w.qacc, w.act_dot are computed. solved: as for
/// implicit_acceleration.
/// Reads also what implicit_acceleration does; changes w.q, w.v, w.act; uses w.scratch, w.factor.
template <class L>
COHORT_KERNEL void integrate(const ModelView& m, Workspace<L>& w, typename L::M solved) {
  implicit_acceleration<L>(m, w, solved);
  advance<L>(m, w, w.act_dot, w.scratch, false, w.v);
}

}  // namespace cohort::sim
