/// Integrators: semi-implicit Euler with implicit joint damping, implicitfast, fourth-order Runge-Kutta (MuJoCo's
/// documentation, "Numerical integration").
#pragma once
#include "sim/kernels/actuation.h"
#include "sim/kernels/factor.h"
#include "sim/kernels/spatial.h"
#include "sim/kernels/workspace.h"

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

/// w.scratch := the acceleration that the velocity advances with, for Euler and implicitfast. Uses w.factor.
template <class L>
COHORT_KERNEL void implicit_acceleration(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const bool fast = m.option.integrator == kImplicitFast;
  if (!fast && !(m.option.implicit_damping && m.damped)) {
    for (int d = 0; d < m.nv; ++d) w.scratch[d] = w.qacc[d];
    return;
  }
  const Pattern p{m.pattern, m.pattern_start};
  const V h(m.option.timestep);
  copy_matrix<L>(m.nv, p, w.mass, w.factor);
  for (int d = 0; d < m.nv; ++d) {
    const auto diagonal = w.factor + triangle(d, d);
    diagonal[0] = fma(h, V(m.dof[d].damping), diagonal[0]);
    w.scratch[d] = w.smooth[d] + w.constraint[d];
  }
  if (fast) {
    // Rank-one terms J' b J of tendons and actuators, as far as the inertia matrix has the entries.
    const auto add = [&](int first, int count, V b) {
      for (int k = first; k < first + count; ++k) {
        for (int e = first; e < first + count; ++e) {
          const int i = m.wrap[k].dof, j = m.wrap[e].dof;
          if (j > i) continue;
          bool stored = false;
          for (int c = m.pattern_start[i]; c < m.pattern_start[i + 1]; ++c) stored = stored || m.pattern[c] == j;
          if (!stored) continue;
          const auto entry = w.factor + triangle(i, j);
          entry[0] = fma(-h * b, V(m.wrap[k].coefficient * m.wrap[e].coefficient), entry[0]);
        }
      }
    };
    for (int t = 0; t < m.ntendon; ++t) {
      if (m.tendon[t].damping != 0) add(m.tendon[t].first_wrap, m.tendon[t].wrap_count, V(-m.tendon[t].damping));
    }
    for (int i = 0; i < m.nact; ++i) {
      if (m.actuator[i].gain[2] != 0 || m.actuator[i].bias[2] != 0) {
        add(m.actuator[i].first_wrap, m.actuator[i].wrap_count, w.actuator_slope[i]);
      }
    }
  }
  factor_in_place<L>(m.nv, p, w.factor);
  solve_in_place<L>(m.nv, p, w.factor, w.scratch);
}

/// Advances activations, then w.v by `acceleration`, then w.q with `velocity`, or with the new w.v where that is null.
template <class L>
COHORT_LANE void advance(const ModelView& m, Workspace<L>& w, typename L::Ptr rates, typename L::Ptr acceleration,
                         bool own_velocity, typename L::Ptr velocity) {
  using V = typename L::V;
  if (m.option.actuation) {
    for (int i = 0; i < m.nact; ++i) {
      const ActuatorRecord& a = m.actuator[i];
      if (a.act >= 0) w.act[a.act] = next_activation<L>(m, a, w.act[a.act], rates[a.act]);
    }
  }
  for (int d = 0; d < m.nv; ++d) w.v[d] = fma(V(m.option.timestep), acceleration[d], w.v[d]);
  move_coordinates<L>(m, w.q, own_velocity ? velocity : w.v, m.option.timestep);
}

/// One step from the state whose w.qacc, w.act_dot are computed. `evaluate` computes them for the state in w.
template <class L, class Evaluate>
COHORT_KERNEL void integrate(const ModelView& m, Workspace<L>& w, Evaluate evaluate) {
  using V = typename L::V;
  if (m.option.integrator != kRk4) {
    implicit_acceleration<L>(m, w);
    advance<L>(m, w, w.act_dot, w.scratch, false, w.v);
    return;
  }
  const int nq = m.nq, nv = m.nv, na = m.na;
  const float h = m.option.timestep;
  const auto start = w.rk_start, sum = w.rk_sum;
  const auto rate_v = sum + nv, rate_act = sum + 2 * nv;
  for (int i = 0; i < nq; ++i) start[i] = w.q[i];
  for (int i = 0; i < nv; ++i) start[nq + i] = w.v[i];
  for (int i = 0; i < na; ++i) start[nq + nv + i] = w.act[i];
  const float inner[3] = {0.5f, 0.5f, 1.0f};
  const float weight[4] = {1.0f / 6.0f, 1.0f / 3.0f, 1.0f / 3.0f, 1.0f / 6.0f};
  for (int i = 0; i < 2 * nv + na; ++i) sum[i] = V(0.0f);
  for (int stage = 0; stage < 4; ++stage) {
    const V b(weight[stage]);
    for (int i = 0; i < nv; ++i) {
      sum[i] = fma(b, w.v[i], sum[i]);
      rate_v[i] = fma(b, w.qacc[i], rate_v[i]);
    }
    for (int i = 0; i < na; ++i) rate_act[i] = fma(b, w.act_dot[i], rate_act[i]);
    if (stage == 3) break;
    // The next evaluation point: start moved along this stage's rates.
    const float step = h * inner[stage];
    for (int i = 0; i < nv; ++i) w.scratch[i] = w.v[i];
    for (int i = 0; i < nq; ++i) w.q[i] = start[i];
    move_coordinates<L>(m, w.q, w.scratch, step);
    for (int i = 0; i < nv; ++i) w.v[i] = fma(V(step), w.qacc[i], start[nq + i]);
    for (int i = 0; i < na; ++i) w.act[i] = fma(V(step), w.act_dot[i], start[nq + nv + i]);
    evaluate();
  }
  for (int i = 0; i < nq; ++i) w.q[i] = start[i];
  for (int i = 0; i < nv; ++i) w.v[i] = start[nq + i];
  for (int i = 0; i < na; ++i) w.act[i] = start[nq + nv + i];
  advance<L>(m, w, rate_act, rate_v, true, sum);
}

}  // namespace cohort::sim
