/// Newton's method on the constraint rows themselves, for environments with few of them.
///
/// With accelerations a = a0 + M^-1 J' f, forces f determine all rows: J a - aref = b + A f with b = J a0 - aref and
/// A = J M^-1 J'. A row's force is -D x, limited to [low, high]: [0, inf) for limits and edges of pyramids, everything
/// for equalities, the loss for friction. Newton's target for the present pieces solves (A + 1 / D) f = -b over the
/// rows whose force is not at its limit; the search from the present rows to the target's is the one in the
/// accelerations (solver.h), since both are affine. An iteration then costs the cube of the rows that an environment
/// has instead of that of its dofs, and environments whose constraints differ are solved side by side all the same:
/// each numbers its own, and who is solved beside whom is row_islands.h's.
///
/// Elliptic cones are not piecewise quadratic: solver.h solves them, and environments with more rows than
/// ModelView::row_space.
#pragma once
#include "sim/kernels/solve/hessian.h"
#include "sim/kernels/solve/row_newton.h"

namespace cohort::sim {

/// The rows back to piece[jar], where sensors look. `rows` as they were at the start.
/// Reads r.x; writes the groups' piece[jar], changes rows.next.
template <class L>
COHORT_KERNEL void return_rows(const Constraints<L>& c, RowSpace<L>& r, const RowPart<L>& part, const RowIslands<L>& p,
                               RowsOfLanes<L>& rows) {
  each_group<L>(c, part, p, 0, p.lists, [&](int t, const Group& g) {
    const auto jar = c.pool + (g.at + g.layout.jar);
    for (unsigned left = g.lanes & p.having[t]; left != 0; left &= left - 1) {
      const int lane = lowest_bit(left);
      const auto x = r.x + rows.next[t][lane];
      rows.next[t][lane] += g.edges;
      for (int e = 0; e < g.edges; ++e) set_lane(jar[e], lane, get_lane(x[e], lane));
    }
  });
}

/// sum := scaled' f.
/// Reads r.scaled, f; writes sum.
template <class L>
COHORT_KERNEL void sum_of_rows(const RowBlocks& blocks, RowSpace<L>& r, typename L::Ptr f, typename L::Ptr sum) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int b = 0; b < blocks.count; ++b) {
    const RowBlock &own = blocks.block[b], &across = blocks.block[blocks.count];
    int d = own.dof;
    for (; d + 4 <= own.dof_end; d += 4) {
      V s0 = zero, s1 = zero, s2 = zero, s3 = zero;
      const auto add = [&](const RowBlock& rows) {
        auto column = r.scaled + rows.entry(d, rows.row);
        const int n = rows.stride;
        for (int i = rows.row; i < rows.end; ++i) {
          const V fi = f[i];
          s0 = fma(column[0], fi, s0), s1 = fma(column[n], fi, s1);
          s2 = fma(column[2 * n], fi, s2), s3 = fma(column[3 * n], fi, s3);
          column = column + 1;
        }
      };
      add(own);
      add(across);
      sum[d] = s0, sum[d + 1] = s1, sum[d + 2] = s2, sum[d + 3] = s3;
    }
    for (; d < own.dof_end; ++d) {
      V total = zero;
      for (int i = own.row; i < own.end; ++i) total = fma(r.scaled[own.entry(d, i)], f[i], total);
      for (int i = across.row; i < across.end; ++i) total = fma(r.scaled[across.entry(d, i)], f[i], total);
      sum[d] = total;
    }
  }
}

/// The warm start's difference, and its energies: with M = L' D L, the squares of L (a_warm - a0) times D.
/// Reads w.warm, w.acc_smooth, w.factor; writes `difference`, part.energy.
template <class L>
COHORT_KERNEL void begin_part(const ModelView& m, const RowTrees& trees, const Workspace<L>& w,
                              typename L::Ptr difference, RowPart<L>& part) {
  using V = typename L::V;
  for (V& e : part.energy) e = V(0.0f);
  if (m.option.warmstart == 0) {
    for (int d = 0; d < m.nv; ++d) difference[d] = V(0.0f);
    return;
  }
  V& coupled = part.energy[trees.count];
  for (int t = 0; t < trees.count; ++t) {
    V own(0.0f);
    for (int d = trees.dof[t]; d < trees.dof[t + 1]; ++d) {
      const V change = w.warm[d] - w.acc_smooth[d];
      difference[d] = change;
      const auto row = w.factor + triangle(d, 0);
      const int last = m.pattern_start[d + 1] - 1;
      V y = change;
      for (int k = m.pattern_start[d]; k < last; ++k) y = fma(row[m.pattern[k]], difference[m.pattern[k]], y);
      own = fma(y / row[d], y, own);  // the factor has 1 / D
    }
    part.energy[t] = own;
    coupled = select(mask_of<L>(part.counts.coupled[t]), coupled + own, coupled);
  }
}

/// Back to accelerations of the islands' environments and, for the lanes of `forces`, to generalized forces:
/// sum = scaled' f = D^-1/2 L'^-1 J' f. sum, out: (nv) each.
/// Reads r.scaled, r.force, r.x, r.root, r.difference, w.factor, w.acc_smooth; writes w.qacc, w.constraint, r.target.
template <class L>
COHORT_KERNEL void end_rows(const ModelView& m, Workspace<L>& w, RowSpace<L>& r, typename L::Ptr sum,
                            typename L::Ptr out, const RowIslands<L>& p, const RowSearch<L>& at, unsigned forces) {
  using V = typename L::V;
  const int begin = p.trees.dof[0], end = p.trees.dof[p.trees.count];
  // Tree by tree to the lanes of `some` that have its dofs.
  const auto give = [&](typename L::Ptr to, unsigned some, auto value) {
    for (int t = 0; t < p.trees.count; ++t) {
      const auto lanes = mask_of<L>(some & p.having[t]);
      for (int d = p.trees.dof[t]; d < p.trees.dof[t + 1]; ++d) to[d] = select(lanes, value(d), to[d]);
    }
  };
  sum_of_rows<L>(at.blocks, r, r.force, sum);
  give(w.qacc, p.lanes, [&](int d) {
    V a = sum[d] * r.root[d];
    const auto row = w.factor + triangle(d, 0);
    const int last = m.pattern_start[d + 1] - 1;
    for (int k = m.pattern_start[d]; k < last; ++k) a = fma(-row[m.pattern[k]], out[m.pattern[k]], a);
    out[d] = a;
    return fma(at.rest, r.difference[d], w.acc_smooth[d]) + a;
  });
  if (forces == 0) return;
  // Where the search has ended before, MuJoCo's forces are those at the rows.
  for (int i = 0; i < at.blocks.rows; ++i) r.target[i] = select(at.exact, r.force[i], row_force<L>(r, i, r.x[i]));
  sum_of_rows<L>(at.blocks, r, r.target, sum);
  for (int d = begin; d < end; ++d) {
    const V own = sum[d] / r.root[d];
    const auto row = w.factor + triangle(d, 0);
    const int last = m.pattern_start[d + 1] - 1;
    for (int k = m.pattern_start[d]; k < last; ++k) out[m.pattern[k]] = fma(row[m.pattern[k]], own, out[m.pattern[k]]);
    out[d] = own;
  }
  give(w.constraint, forces, [&](int d) { return V(out[d]); });
}

/// Solves the lanes' islands: accelerations and iterations, forces where the iterations were too few or the rows are
/// read.
/// Reads the groups, w.factor, w.acc_smooth, r.difference; writes w.qacc, w.constraint, part.iterations, part.open, all
/// of r; uses s.grad, s.precond.
template <class L>
COHORT_KERNEL void solve_islands(const ModelView& m, Workspace<L>& w, const Constraints<L>& c, const SolverSpace<L>& s,
                                 RowSpace<L>& r, RowPart<L>& part, const RowIslands<L>& p) {
  using V = typename L::V;
  if (p.lanes == 0) return;
  const typename L::M lanes = mask_of<L>(p.lanes);
  for (int d = p.trees.dof[0]; d < p.trees.dof[p.trees.count]; ++d) r.root[d] = sqrt(V(w.factor[triangle(d, d)]));
  RowSearch<L> at;
  RowsOfLanes<L> numbers(p, m.row_space, at.blocks);
  for (int b = 0; b <= at.blocks.count; ++b) {
    if (at.blocks.block[b].stride == 0) continue;
    number_rows<L>(m, c, r, part, p, numbers, at.blocks, b);
    delassus_of_rows<L>(m, w, r, at.blocks, b);
  }
  at.energy = part.energy[p.first + p.lists - 1];  // that of coupled trees stands behind the others
  start_rows<L>(m, r, at);
  const V enough = V(m.option.tolerance) / part.scale, most(static_cast<float>(m.option.iterations));
  at.live = lanes, at.exact = lanes & flip(lanes);
  V used(0.0f);
  for (int i = 0; i < m.option.iterations && any(at.live); ++i) {
    at.n = at.blocks.count > 1 ? at.blocks.rows : RowCounts<L>::most(p.all, lane_bits(at.live));
    newton_target<L>(r, at);
    const V alpha = search_rows<L>(m, r, at);
    const auto moved = move_rows<L>(r, at, alpha, enough);
    used = select(moved, used + V(1.0f), used);
  }
  part.iterations = select(lanes & (used > part.iterations), used, part.iterations);
  const unsigned open = lane_bits(lanes & (used >= most));
  for (int t = 0; t < p.trees.count; ++t) part.open[p.first + t] |= open & p.having[t];
  end_rows<L>(m, w, r, s.grad, s.precond, p, at, c.rows_are_read ? p.lanes : open);
  if (!c.rows_are_read) return;
  numbers = RowsOfLanes<L>(p, m.row_space, at.blocks);
  return_rows<L>(c, r, part, p, numbers);
}

/// Where one tree of a lane has ended and another has not: w.constraint := M (a - a0) of the former. Uses
/// `difference` and `product`.
/// Reads w.qacc, w.acc_smooth, w.mass, part.open.
template <class L>
COHORT_KERNEL void forces_of_ended_trees(const ModelView& m, const RowTrees& trees, Workspace<L>& w,
                                         typename L::Ptr difference, typename L::Ptr product, const RowPart<L>& part) {
  unsigned open = 0;
  for (int t = 0; t < trees.count; ++t) open |= part.open[t];
  const unsigned lanes = part.lanes & open;
  if (lanes == 0) return;
  for (int d = 0; d < m.nv; ++d) difference[d] = w.qacc[d] - w.acc_smooth[d];
  multiply_symmetric<L>(m.nv, {m.pattern, m.pattern_start}, w.mass, difference, product);
  for (int t = 0; t < trees.count; ++t) {
    const auto ended = mask_of<L>(lanes & ~part.open[t]);
    for (int d = trees.dof[t]; d < trees.dof[t + 1]; ++d) {
      w.constraint[d] = select(ended, product[d], w.constraint[d]);
    }
  }
}

/// From w.acc_smooth (and w.warm as warm start) to w.qacc (and w.constraint, as solve_constraints) for part.lanes, none
/// of which has more rows than m.row_space, and to part.iterations, which are 0. w.factor holds M's factor, and the
/// rows end in the groups' pieces where they are read.
template <class L>
COHORT_KERNEL void solve_in_rows(const ModelView& m, Workspace<L>& w, const Constraints<L>& c, const SolverSpace<L>& s,
                                 RowSpace<L>& r, RowPart<L>& part) {
  const RowTrees trees(m);
  begin_part<L>(m, trees, w, r.difference, part);
  // Trees without rows.
  const auto lanes = mask_of<L>(part.lanes);
  for (int d = 0; d < m.nv; ++d) {
    w.qacc[d] = select(lanes, w.acc_smooth[d], w.qacc[d]);
    w.constraint[d] = select(lanes, typename L::V(0.0f), w.constraint[d]);
  }
  for (int t = 0; t < trees.count; ++t) {
    solve_islands<L>(m, w, c, s, r, part, RowIslands<L>::of_tree(trees, part, t));
  }
  solve_islands<L>(m, w, c, s, r, part, RowIslands<L>::of_coupled(trees, part));
  if (trees.count > 1 && !c.rows_are_read) forces_of_ended_trees<L>(m, trees, w, r.difference, s.Mv, part);
}

}  // namespace cohort::sim
