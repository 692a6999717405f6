/// One environment's part of the solver in a team's own memory: what solve_in_accelerations reads and writes, taken
/// from the block in which a thread has made the rows, and given back to it.
#pragma once
#include "sim/kernels/solve/solver.h"

namespace cohort::sim {

/// Most dofs of a team's model: a row of a matrix has its columns as bits of one word.
inline constexpr int kMostTeamDofs = 64;

/// An environment's constraints, and the values that a search along them takes.
struct TeamRows {
  int groups = 0, pool = 0, rows = 0, cones = 0;
};
template <class L>
COHORT_LANE TeamRows team_rows(const Constraints<L>& c) {
  TeamRows n;
  n.groups = c.count, n.pool = c.pool_used;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (g.kind == kGroupElliptic) {
      n.cones += kConeValues;
    } else {
      n.rows += g.edges * row_values(g);
    }
  }
  return n;
}

template <class L>
struct TeamSpace {
  Workspace<L> w;
  Constraints<L> c;
  SolverSpace<L> s;
};

/// Lays out the values, from `base` on; returns their number. The caller gives c.group, s.cols (nv (nv + 1) / 2),
/// s.start (nv + 1) and s.bits (2 nv).
template <class L>
COHORT_LANE int lay_out_team(const ModelView& m, const TeamRows& n, typename L::Ptr base, TeamSpace<L>& to) {
  Arena<L> values{base};
  const int nv = m.nv, size = triangle(nv, 0);
  to.w.mass = values.take(size), to.w.factor = values.take(size), to.s.hessian = values.take(size);
  const bool newton = m.option.newton != 0;
  to.s.sum = values.take(newton && m.neq > 0 ? size : 0);
  to.w.smooth = values.take(nv), to.w.acc_smooth = values.take(nv), to.w.warm = values.take(nv);
  to.w.qacc = values.take(nv), to.w.constraint = values.take(nv);
  to.s.Ma = values.take(nv), to.s.grad = values.take(nv), to.s.search = values.take(nv), to.s.Mv = values.take(nv);
  to.s.precond = values.take(nv);
  to.s.grad_old = values.take(newton ? 0 : nv), to.s.precond_old = values.take(newton ? 0 : nv);
  to.s.scale = values.take(1);
  to.c.pool = values.take(n.pool), to.c.rows = values.take(n.rows), to.c.cones = values.take(n.cones);
  return values.used;
}

/// The environment's solver input, out of `from`, of which the team reads the groups as well.
template <class L, class From>
COHORT_LANE void take_environment(const ModelView& m, const Workspace<From>& w, const Constraints<From>& c,
                                  const SolverSpace<From>& s, TeamSpace<L>& to) {
  each<L>(m.nv, [&](int i) {
    for (int k = m.pattern_start[i]; k < m.pattern_start[i + 1]; ++k) {
      const int at = triangle(i, m.pattern[k]);
      to.w.mass[at] = w.mass[at], to.w.factor[at] = w.factor[at];
    }
    to.w.smooth[i] = w.smooth[i], to.w.acc_smooth[i] = w.acc_smooth[i], to.w.warm[i] = w.warm[i];
  });
  each<L>(c.pool_used, [&](int i) { to.c.pool[i] = c.pool[i]; });
  one<L>([&] { to.s.scale[0] = solver_scale<From>(m, w, s); });
  to.c.count = c.count, to.c.pool_used = c.pool_used;
  to.c.constrained = c.constrained, to.c.rows_are_read = c.rows_are_read;
}

/// Accelerations, forces and, where they are read, rows back to `w` and `c`.
template <class L, class Into>
COHORT_LANE void give_environment(const ModelView& m, const TeamSpace<L>& from, Workspace<Into>& w,
                                  Constraints<Into>& c) {
  each<L>(m.nv, [&](int d) { w.qacc[d] = from.w.qacc[d], w.constraint[d] = from.w.constraint[d]; });
  if (!c.rows_are_read) return;
  each<L>(c.pool_used, [&](int i) { c.pool[i] = from.c.pool[i]; });
}

}  // namespace cohort::sim
