/// Everything without constraints: from (q, v, act, inputs) to w.mass, w.smooth, w.acc_smooth.
#pragma once
#include "sim/kernels/smooth/actuation.h"
#include "sim/kernels/smooth/dynamics.h"
#include "sim/kernels/smooth/factor.h"
#include "sim/kernels/smooth/kinematics.h"
#include "sim/kernels/smooth/passive.h"
#include "sim/kernels/smooth/tendons.h"

namespace cohort::sim {

/// Adds what the actuators do to w.smooth; writes w.acc_smooth.
/// Reads what actuation reads, w.factor.
template <class L>
COHORT_KERNEL void act(const ModelView& m, Workspace<L>& w) {
  actuation<L>(m, w);
  for (int d = 0; d < m.nv; ++d) w.acc_smooth[d] = w.smooth[d];
  solve_in_place<L>(m.nv, Pattern<L>{m.pattern, m.pattern_start}, w.factor, w.acc_smooth);
}

/// Reads w.q, w.v, w.act and inputs; writes all that is derived without constraints, the last of it w.mass, w.factor,
/// w.smooth, w.acc_smooth. With adhesion, what the actuators do is left to those who know the contacts.
template <class L>
COHORT_KERNEL void smooth_dynamics(const ModelView& m, Workspace<L>& w) {
  kinematics<L>(m, w);
  velocities<L>(m, w);
  applied_forces<L>(m, w);
  if (m.nfluid > 0) fluid_forces<L>(m, w);
  composite_inertia<L>(m, w);
  tendons<L>(m, w);
  if (m.tendon_inertia) tendon_inertia<L>(m, w, true);
  passive<L>(m, w);
  const Pattern<L> p{m.pattern, m.pattern_start};
  copy_matrix<L>(m.nv, p, w.mass, w.factor);
  factor_in_place<L>(m.nv, p, w.factor);
  if (!m.adhesion) act<L>(m, w);
}

}  // namespace cohort::sim
