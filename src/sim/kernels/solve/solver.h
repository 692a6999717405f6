/// The constraint solver: minimizes over accelerations a
///   1/2 (a - a0)' M (a - a0) + sum over constraints of s(J a - aref)
/// by Newton's method or conjugate gradients, with MuJoCo's costs, termination and warm start (MuJoCo's documentation,
/// "Constraint solver"; Todorov 2014). Lanes run together; one that has converged keeps its numbers while the others go
/// on, and a group that weighs nothing in any lane that goes on is left out: it would add zeros.
///
/// Where single precision forces a difference: the line search ends when the slope has fallen to kSlopeTolerance of its
/// start, or no more than that share of the improvement is left to gain, if MuJoCo's own tolerance lies below; costs
/// enter as differences along the search only; Newton's method ends where its step is within the accelerations' own
/// rounding (kRoundedStep), which masses of micrograms reach long before MuJoCo's tolerance.
#pragma once
#include "sim/kernels/constraint/rows.h"
#include "sim/kernels/solve/block_space.h"
#include "sim/kernels/solve/line_search.h"
#include "sim/kernels/solve/row_space.h"

namespace cohort::sim {

/// The sum over i < n of what add(i, sum) adds, in four parts that do not wait for each other.
template <class L, class Add>
COHORT_LANE typename L::V sum_of(int n, Add add) {
  using V = typename L::V;
  if constexpr (kIsTeam<L>) {
    V s[4];
    parts<L, 4>(s, [&](int part) {
      V sum(0.0f);
      const int end = n / 4 * 4;
      for (int i = part; i < end; i += 4) sum = add(i, sum);
      for (int i = end; part == 0 && i < n; ++i) sum = add(i, sum);
      return sum;
    });
    return (s[0] + s[1]) + (s[2] + s[3]);
  } else {
    V s0(0.0f), s1(0.0f), s2(0.0f), s3(0.0f);
    int i = 0;
    for (; i + 4 <= n; i += 4) s0 = add(i, s0), s1 = add(i + 1, s1), s2 = add(i + 2, s2), s3 = add(i + 3, s3);
    for (; i < n; ++i) s0 = add(i, s0);
    return (s0 + s1) + (s2 + s3);
  }
}
template <class L>
COHORT_LANE typename L::V dot_n(int n, typename L::Ptr a, typename L::Ptr b) {
  using V = typename L::V;
  return sum_of<L>(n, [&](int i, V sum) { return fma(V(a[i]), b[i], sum); });
}

/// The start: w.qacc, s.Ma and the rows piece[jar] at the better of the last acceleration and the unconstrained one.
/// Reads w.acc_smooth, w.warm, w.smooth, w.mass, the groups; writes w.qacc, s.Ma, piece[jar]; uses s.Mv, c.rows.
template <class L>
COHORT_KERNEL void start_solver(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s) {
  using V = typename L::V;
  const V half(0.5f);
  const bool may_be_warm = m.option.warmstart != 0;
  V cold(0.0f), warm(0.0f);
  auto next_rows = c.rows;  // and on into the cones, which have more values than rows
  const auto rows_of = [&](int k) {
    auto rows = next_rows;
    if constexpr (kIsTeam<L>) {
      for (int before = 0; before < k; ++before) rows = rows + c.group[before].edges;
    } else {
      next_rows = next_rows + c.group[k].edges;
    }
    return rows;
  };
  const auto start_group = [&](int k, V* costs) COHORT_BODY {
    const Group& g = c.group[k];
    const auto piece = c.pool + g.at;
    const GroupLayout& l = g.layout;
    V edges[kMaxEdges], warm_edges[kMaxEdges];
    if (!may_be_warm) {
      edges_of<L>(m, g, piece, w.acc_smooth, edges);
      for (int e = 0; e < g.edges; ++e) piece[l.jar + e] = edges[e] - piece[l.aref + e];
      costs[0] = costs[1] = V(0.0f);
      return;
    }
    const auto warm_rows = rows_of(k);
    edges_of_two<L>(m, g, piece, w.acc_smooth, w.warm, edges, warm_edges);
    for (int e = 0; e < g.edges; ++e) {
      const V aref = piece[l.aref + e];
      piece[l.jar + e] = edges[e] - aref, warm_rows[e] = warm_edges[e] - aref;
    }
    costs[0] = cost_at<L>(g, piece, piece + l.jar);
    costs[1] = cost_at<L>(g, piece, warm_rows);
  };
  in_order<L, 2>(c.count, start_group, [&](const V* costs) { cold += costs[0], warm += costs[1]; });
  // M times the unconstrained acceleration is the force that makes it.
  each<L>(m.nv, [&](int d) { w.qacc[d] = w.acc_smooth[d], s.Ma[d] = w.smooth[d]; });
  if (!may_be_warm) return;
  multiply_symmetric<L>(m.nv, mass_pattern<L>(m, s), w.mass, w.warm, s.Mv);
  warm += half *
          sum_of<L>(m.nv, [&](int d, V sum) { return fma(s.Mv[d] - w.smooth[d], w.warm[d] - w.acc_smooth[d], sum); });
  const auto use_warm = c.constrained & (warm <= cold);
  if (!any(use_warm)) return;
  each<L>(m.nv, [&](int d) {
    w.qacc[d] = select(use_warm, w.warm[d], w.qacc[d]);
    s.Ma[d] = select(use_warm, s.Mv[d], s.Ma[d]);
  });
  next_rows = c.rows;
  each<L>(c.count, [&](int k) {
    const Group& g = c.group[k];
    const auto jar = c.pool + (g.at + g.layout.jar), warm_rows = rows_of(k);
    for (int e = 0; e < g.edges; ++e) jar[e] = select(use_warm, warm_rows[e], jar[e]);
  });
}

/// total += J' force of a Jacobian with kDim rows and n columns.
template <class L, int kDim>
COHORT_LANE void add_forces(int n, const int* dofs, typename L::Ptr jacobian, const typename L::V* force,
                            typename L::Ptr total) {
  using V = typename L::V;
  const auto add = [&](int a) {
    V sum = total[dofs[a]];
    for (int i = 0; i < kDim; ++i) sum = fma(V(jacobian[i * n + a]), force[i], sum);
    total[dofs[a]] = sum;
  };
  if constexpr (kDim > 1) {
    each<L>(n, add);
  } else {
    // Single rows may name a dof twice.
    one<L>([&] {
      for (int a = 0; a < n; ++a) add(a);
    });
  }
}

/// In the lanes of `where`: w.constraint := J' force at piece[jar]. Uses s.precond.
/// Reads the groups; writes w.constraint.
template <class L>
COHORT_KERNEL void constraint_forces(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                                     typename L::M where) {
  using V = typename L::V;
  const unsigned bits = lane_bits(where);
  const auto total = s.precond;
  each<L>(m.nv, [&](int d) { total[d] = V(0.0f); });
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & bits) == 0) continue;
    const auto piece = c.pool + g.at;
    with_dim(g.dim, [&](auto dim) {
      constexpr int kDim = decltype(dim)::kDim;
      V force[kDim];
      forces_of<L, kDim>(g, piece, force);
      add_forces<L, kDim>(g.dofs, m.row_dof + g.first_dof, piece, force, total);
    });
  }
  each<L>(m.nv, [&](int d) { w.constraint[d] = select(where, total[d], w.constraint[d]); });
}

template <class L>
COHORT_LANE typename L::V solver_scale(const ModelView& m, const Workspace<L>& w) {
  return weight_of<L>(m, w, m.option.scale, ratio_layout(m).scale);
}
/// A team has it among the solver's values.
template <class L>
COHORT_LANE typename L::V solver_scale(const ModelView& m, const Workspace<L>& w, const SolverSpace<L>& s) {
  if constexpr (kIsTeam<L>) {
    return s.scale[0];
  } else {
    return solver_scale<L>(m, w);
  }
}

/// A step whose square, in the norm of the Hessian, is less than this share of the accelerations' in the norm of M
/// changes nothing but rounding: the square of a float's epsilon, 1.2e-7.
inline constexpr float kRoundedStep = 1.4e-14f;

/// Directions of conjugate gradients are only conjugate after a line search this exact.
inline constexpr float kConjugateSlopeTolerance = 1e-4f;

/// Step length along s.search for the live lanes, 0 where nothing improves; `improvement` is the fall of the cost,
/// `line` what it looked at.
/// Reads w.mass, w.smooth, s.Ma, s.search, the groups; writes s.Mv, c.rows, c.cones.
template <class L>
COHORT_KERNEL typename L::V line_search(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                                        typename L::M live, SearchLine<L>& line, typename L::V& improvement) {
  using V = typename L::V;
  const V zero(0.0f);
  multiply_symmetric<L>(m.nv, mass_pattern<L>(m, s), w.mass, s.search, s.Mv);
  const V gauss = sum_of<L>(m.nv, [&](int d, V sum) { return fma(s.search[d], s.Ma[d] - w.smooth[d], sum); });
  // The slope at 0 is summed as at every other point, and not taken from the gradient: near the minimum they differ in
  // sign, and a lane that believes the gradient goes on for nothing.
  line = begin_line<L>(m, c, s.search, lane_bits(live), gauss, dot_n<L>(m.nv, s.search, s.Mv));
  const V slope = line.slope + line.slope_now, curvature = line.curvature + line.curvature_now;
  const V norm = sqrt(dot_n<L>(m.nv, s.search, s.search));
  const V share(m.option.newton != 0 ? kSlopeTolerance : kConjugateSlopeTolerance);
  const V gtol =
      max(norm * V(m.option.tolerance * m.option.ls_tolerance) / solver_scale<L>(m, w, s), abs(slope) * share);
  // Newton's method on the slope, kept between lo (slope negative) and hi (positive). `gained`: the cost at lo has
  // fallen at least so much, since the slope only rises.
  V lo(0.0f), hi(3e38f), gained(0.0f);
  auto open = live & (slope < zero);
  V alpha = select(open, -slope / max(curvature, V(1e-30f)), zero);
  // At least one point is looked at, as by MuJoCo.
  for (int i = 1; (i == 1 || i < m.option.ls_iterations) && any(open); ++i) {
    V d1, d2;
    slopes_along<L>(c, line, alpha, d1, d2);
    const typename L::M rising = d1 > zero, falling = open & flip(rising);
    // What is left to gain is less than the slope over the rest of the interval.
    const V left = abs(d1) * select(rising, alpha - lo, hi - alpha);
    gained = select(falling, fma(-d1, alpha - lo, gained), gained);
    hi = select(open & rising, alpha, hi);
    lo = select(falling, alpha, lo);
    const auto bracketed = hi < V(1e38f);
    open = open & flip((abs(d1) < gtol) | (bracketed & (left < share * gained)));
    const V newton = alpha - d1 / max(d2, V(1e-30f));
    const V fallback = select(bracketed, V(0.5f) * (lo + hi), alpha + alpha);
    const V next = select((newton > lo) & (newton < hi), newton, fallback);
    // An interval that single precision cannot divide any more ends where the cost has fallen.
    const auto on = open & (abs(next - alpha) > V(1e-6f) * abs(alpha));
    alpha = select(on, next, select(open, lo, alpha));
    open = on;
  }
  // Out of iterations: the end of the interval that costs less.
  alpha = select(open, lo, alpha);
  improvement = -cost_along<L>(c, line, alpha);
  const auto beyond = open & (hi < V(1e38f));
  if (any(beyond)) {
    const V further = select(beyond, hi, alpha), gain = -cost_along<L>(c, line, further);
    const auto better = gain > improvement;
    alpha = select(better, further, alpha), improvement = select(better, gain, improvement);
  }
  return select(improvement > zero, alpha, zero);
}

/// Conjugate gradients' next direction from s.grad, s.precond and the last ones: Hager and Zhang 2005, with MuJoCo's
/// lower bound.
/// Reads s.grad, s.grad_old, s.precond, s.precond_old; changes s.search.
template <class L>
COHORT_KERNEL void conjugate_direction(int nv, SolverSpace<L>& s, typename L::M live) {
  using V = typename L::V;
  const V zero(0.0f);
  V dy = zero, yMy = zero, yMg = zero, dg = zero, dd = zero, gg = zero;
  for (int d = 0; d < nv; ++d) {
    const V y = s.grad[d] - s.grad_old[d], My = s.precond[d] - s.precond_old[d];
    dy = fma(s.search[d], y, dy), yMy = fma(y, My, yMy), yMg = fma(y, s.precond[d], yMg);
    dg = fma(s.search[d], s.grad[d], dg), dd = fma(s.search[d], s.search[d], dd), gg = fma(s.grad[d], s.grad[d], gg);
  }
  const auto good = dy > V(1e-15f);
  const V safe = select(good, dy, V(1.0f));
  const V hz = (yMg - V(2.0f) * (yMy / safe) * dg) / safe;
  const V eta = V(-1.0f) / max(V(1e-15f), sqrt(dd) * min(V(0.01f), sqrt(gg)));
  const V beta = select(good, max(eta, hz), zero);
  meet<L>();
  each<L>(nv, [&](int d) { s.search[d] = select(live, fma(beta, s.search[d], -s.precond[d]), zero); });
}

/// s.precond := H^-1 s.precond for the lanes that go on.
template <class L>
struct NewtonDirection {
  Pattern<L> pattern;
  int across = 0;
  bool first = true;

  COHORT_LANE NewtonDirection(const ModelView& m, const SolverSpace<L>& s) : pattern(mass_pattern<L>(m, s)) {}

  COHORT_LANE void operator()(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                              typename L::M live) {
    // Lanes that are done may take groups across branches with them; a new pattern pays when half of them went.
    const int now = groups_across<L>(c, lane_bits(live));
    if (first || 2 * now < across) {
      pattern = hessian_pattern<L>(m, c, s, lane_bits(live));
      across = now;
    }
    // Later patterns have no entries that the first one lacks.
    assemble_hessian<L>(m, w, c, s, pattern, live, first);
    first = false;
    factor_hessian<L>(m.nv, pattern, s.hessian, w.factor);
    solve_in_place<L>(m.nv, pattern, s.hessian, s.precond);
  }
};

/// The same for `lanes`, in accelerations; what the others get means nothing.
/// Reads w.mass, w.factor, w.smooth, w.acc_smooth, w.warm, the groups; writes w.qacc, w.constraint, piece[jar]; uses
/// all of s.
template <class L>
COHORT_KERNEL void solve_in_accelerations(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                                          typename L::M lanes, typename L::V& iterations) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const int nv = m.nv;
  const bool newton = m.option.newton != 0;
  const V scale = solver_scale<L>(m, w, s), tolerance(m.option.tolerance);
  if constexpr (kIsTeam<L>) write_mass_bits<L>(m, s);
  start_solver<L>(m, w, c, s);
  each<L>(nv, [&](int d) { w.constraint[d] = zero; });
  NewtonDirection<L> newton_direction(m, s);
  // Lanes that go on; those of them whose rows moved in the last step, which need new forces.
  typename L::M live = lanes, moved = live;
  V improvement = zero;
  SearchLine<L> line;
  const V free_energy = newton ? abs(dot_n<L>(nv, w.acc_smooth, w.smooth)) : zero;
  for (int iteration = 0;; ++iteration) {
    constraint_forces<L>(m, w, c, s, moved);
    if (iteration >= m.option.iterations) break;
    const V squared = sum_of<L>(nv, [&](int d, V sum) {
      const V slope = s.Ma[d] - w.smooth[d] - w.constraint[d];
      s.grad[d] = s.precond[d] = slope;
      return fma(slope, slope, sum);
    });
    const auto flat = scale * sqrt(squared) < tolerance;
    if (iteration > 0) {
      live = live & flip(flat | ((improvement > zero) & (improvement * scale < tolerance)));
      if (!any(live)) break;
    }
    if (newton) {
      newton_direction(m, w, c, s, live);
    } else {
      solve_in_place<L>(nv, mass_pattern<L>(m, s), w.factor, s.precond);
    }
    // Before the first search Newton's gradient must be small as well; CG looks at the duality gap then, and only then.
    if (newton || iteration == 0) {
      const V decrement = dot_n<L>(nv, s.grad, s.precond);
      auto done = decrement < tolerance / (half * scale);
      if (newton && iteration == 0) done = done & flat;
      if (newton) done = done | (decrement < V(kRoundedStep) * (abs(dot_n<L>(nv, w.qacc, s.Ma)) + free_energy));
      live = live & flip(done);
      if (!any(live)) break;
      each<L>(nv, [&](int d) { s.search[d] = select(live, -s.precond[d], zero); });
    } else {
      conjugate_direction<L>(nv, s, live);
    }
    if (!newton) {
      each<L>(nv, [&](int d) { s.grad_old[d] = s.grad[d], s.precond_old[d] = s.precond[d]; });
    }
    const V alpha = line_search<L>(m, w, c, s, live, line, improvement);
    live = live & (alpha > zero);
    if (!any(live)) break;
    iterations = select(live, iterations + V(1.0f), iterations);
    moved = live;
    each<L>(nv, [&](int d) {
      w.qacc[d] = select(live, fma(alpha, s.search[d], w.qacc[d]), w.qacc[d]);
      s.Ma[d] = select(live, fma(alpha, s.Mv[d], s.Ma[d]), s.Ma[d]);
    });
    move_along<L>(c, line, live, alpha);
  }
}

/// piece[jar] := 0, where the rows are read.
template <class L>
COHORT_LANE void rest_rows(Constraints<L>& c) {
  if (!c.rows_are_read) return;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    for (int e = 0; e < g.edges; ++e) c.pool[g.at + g.layout.jar + e] = typename L::V(0.0f);
  }
}

/// How the lanes of a block are solved in accelerations. A policy whose threads help each other specializes it
/// (cuda/team.h): kIsOwn; solve(m, b, many, iterations) for all threads of a block at once, whether theirs is among
/// `many` or not; any_of_block(live).
template <class L>
struct BlockSolver {
  static constexpr bool kIsOwn = false;
  COHORT_LANE static bool any_of_block(typename L::M live) { return any(live); }
};

/// From w.acc_smooth (and w.warm as warm start) to w.qacc and, where the solver ran out of iterations or the rows are
/// read, w.constraint; returns the iterations. w.factor holds M's factor.
template <class L>
COHORT_KERNEL typename L::V solve_constraints(const ModelView& m, BlockSpace<L>& b) {
  using V = typename L::V;
  Constraints<L>& c = b.c;
  Workspace<L>& w = b.w;
  RowPart<L> part;
  part.iterations = V(0.0f);
  for (unsigned& lanes : part.open) lanes = 0;
  c.constrained = c.constrained & c.live;
  auto many = c.constrained;
  if (m.row_space > 0 && any(c.constrained)) {
    part.counts.count(m, RowTrees(m), c);
    const auto few = c.constrained & part.counts.at_most(m.row_space);
    part.lanes = lane_bits(few);
    many = c.constrained & flip(few);
  }
  if constexpr (BlockSolver<L>::kIsOwn) BlockSolver<L>::solve(m, b, many, part.iterations);
  if (any(many)) {
    if constexpr (!BlockSolver<L>::kIsOwn) solve_in_accelerations<L>(m, w, c, b.s, many, part.iterations);
    part.iterations = select(many, part.iterations, V(0.0f));
  } else {
    rest_rows<L>(c);  // of contacts that are kept and act on nothing, too
  }
  if (part.lanes != 0) {
    part.scale = solver_scale<L>(m, w, b.s);
    solve_in_rows<L>(m, w, c, b.s, b.r, part);
  }
  // Lanes without any row: exactly the unconstrained motion, whatever their neighbours did.
  for (int d = 0; d < m.nv; ++d) {
    w.qacc[d] = select(c.constrained, w.qacc[d], w.acc_smooth[d]);
    w.constraint[d] = select(c.constrained, w.constraint[d], V(0.0f));
  }
  return part.iterations;
}

}  // namespace cohort::sim
