/// Newton's method on the constraint rows themselves, for environments with few of them.
///
/// With accelerations a = a0 + M^-1 J' f, forces f determine all rows: J a - aref = b + A f with b = J a0 - aref and
/// A = J M^-1 J'. A row's force is -D x, limited to [low, high]: [0, inf) for limits and edges of pyramids, everything
/// for equalities, the loss for friction. Newton's target for the present pieces solves (A + 1 / D) f = -b over the
/// rows whose force is not at its limit; the search from the present rows to the target's is the one in the
/// accelerations (solver.h), since both are affine. An iteration then costs the cube of the rows that an environment
/// has instead of that of its dofs, and environments whose constraints differ are solved side by side all the same:
/// each numbers its own, and who is solved beside whom is row_packs.h's.
///
/// Elliptic cones are not piecewise quadratic: solver.h solves them, and environments with more rows than
/// ModelView::row_space.
#pragma once
#include "sim/kernels/hessian.h"
#include "sim/kernels/row_newton.h"

namespace cohort::sim {

/// The pack's rows back to piece[jar], where sensors look. `rows` as they were at the start.
template <class L>
COHORT_KERNEL void return_rows(const Constraints<L>& c, RowSpace<L>& r, const RowCounts<L>& counts,
                               const RowPack<L>& pack, RowsOfLanes<L>& rows) {
  each_group<L>(c, counts, pack, 0, pack.lists, [&](int s, int t, const Group& g) {
    const auto jar = c.pool + (g.at + g.layout.jar);
    for (unsigned left = g.lanes & pack.lanes_of(s, t); left != 0; left &= left - 1) {
      const int lane = lowest_bit(left), place = pack.place[s][lane];
      const auto x = r.x + rows.next[t][place];
      rows.next[t][place] += g.edges;
      for (int e = 0; e < g.edges; ++e) set_lane(jar[e], lane, get_lane(x[e], place));
    }
  });
}

/// sum := halves' f.
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
        auto column = r.halves + rows.entry(d, rows.row);
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
      for (int i = own.row; i < own.end; ++i) total = fma(r.halves[own.entry(d, i)], f[i], total);
      for (int i = across.row; i < across.end; ++i) total = fma(r.halves[across.entry(d, i)], f[i], total);
      sum[d] = total;
    }
  }
}

/// What the solver of a block's environments shares between their problems.
template <class L>
struct RowSolver {
  Workspace<L>& w;
  const Constraints<L>& c;
  SolverSpace<L>& s;
  RowSpace<L>& r;
  const RowCounts<L>& counts;
  typename L::V scale;                      ///< what the tolerance is relative to
  typename L::V& iterations;                ///< of the problem of a lane that takes most
  typename L::V energy[kMostRowTrees + 1];  ///< (a_warm - a0)' M (a_warm - a0) of every tree, and of the coupled ones
  /// Lanes whose problem of a tree did not end before the iterations did; they have their forces in w.constraint.
  unsigned open[kMostRowTrees];
};

/// s.search := a_warm - a0, and its energies.
template <class L>
COHORT_KERNEL void begin_trees(const ModelView& m, const RowTrees& trees, RowSolver<L>& solver) {
  using V = typename L::V;
  Workspace<L>& w = solver.w;
  const auto difference = solver.s.search, product = solver.s.Mv;
  for (V& e : solver.energy) e = V(0.0f);
  for (unsigned& lanes : solver.open) lanes = 0;
  if (m.option.warmstart == 0) {
    for (int d = 0; d < m.nv; ++d) difference[d] = V(0.0f);
    return;
  }
  for (int d = 0; d < m.nv; ++d) difference[d] = w.warm[d] - w.acc_smooth[d];
  multiply_symmetric<L>(m.nv, {m.pattern, m.pattern_start}, w.mass, difference, product);
  V &coupled = solver.energy[trees.count], *own = solver.energy;
  for (int t = 0; t < trees.count; ++t) {
    for (int d = trees.dof[t]; d < trees.dof[t + 1]; ++d) own[t] = fma(V(product[d]), difference[d], own[t]);
    coupled = select(mask_of<L>(solver.counts.coupled[t]), coupled + own[t], coupled);
  }
}

/// A pack's numbers over its dofs: where they are, or gathered.
template <class L>
COHORT_KERNEL PackedDofs<L> packed_dofs(const ModelView& m, const RowSolver<L>& solver, const RowPack<L>& pack) {
  using V = typename L::V;
  const Workspace<L>& w = solver.w;
  RowSpace<L>& r = solver.r;
  const int begin = pack.trees.dof[0], end = pack.trees.dof[pack.trees.count];
  PackedDofs<L> dofs{w.factor, w.acc_smooth, solver.s.search, V(0.0f), V(0.0f)};
  dofs.scale = pack.gather([&](int) { return solver.scale; });
  // That of coupled trees stands behind the others.
  dofs.energy = pack.gather([&](int s) { return solver.energy[pack.lists > 1 ? pack.trees.count : pack.tree[s]]; });
  if (pack.moved) {
    dofs.factor = r.mass_factor, dofs.smooth = r.smooth, dofs.difference = r.difference;
    const auto gather = [&](typename L::Ptr from, int d) {
      return pack.gather([&](int s) { return V(from[d + pack.shift[s]]); });
    };
    for (int d = begin; d < end; ++d) {
      for (int k = m.pattern_start[d]; k < m.pattern_start[d + 1]; ++k) {
        const int j = m.pattern[k];
        dofs.factor[triangle(d, j)] =
            pack.gather([&](int s) { return V(w.factor[triangle(d + pack.shift[s], j + pack.shift[s])]); });
      }
      dofs.smooth[d] = gather(w.acc_smooth, d), dofs.difference[d] = gather(solver.s.search, d);
    }
  }
  for (int d = begin; d < end; ++d) r.root[d] = sqrt(V(dofs.factor[triangle(d, d)]));
  return dofs;
}

/// Back to accelerations of the pack's environments and, for the lanes of `forces` of every source, to generalized
/// forces: sum = halves' f = D^-1/2 L'^-1 J' f.
template <class L>
COHORT_KERNEL void end_rows(const ModelView& m, const RowSolver<L>& solver, const RowPack<L>& pack,
                            const RowSearch<L>& at, const PackedDofs<L>& dofs, const unsigned* forces) {
  using V = typename L::V;
  const int begin = pack.trees.dof[0], end = pack.trees.dof[pack.trees.count];
  RowSpace<L>& r = solver.r;
  const Pattern p{m.pattern, m.pattern_start};
  const auto sum = solver.s.grad, out = solver.s.precond;
  // Tree by tree what its dofs have at the pack's places, value(d), to those of `some` lanes of every source that are
  // in the pack.
  const auto give = [&](typename L::Ptr to, const unsigned* some, auto value) {
    for (int t = 0; t < pack.trees.count; ++t) {
      typename L::M lanes[kMostSources<L>] = {};
      for (int s = 0; s < pack.sources; ++s) lanes[s] = mask_of<L>(some[s] & pack.lanes_of(s, t));
      for (int d = pack.trees.dof[t]; d < pack.trees.dof[t + 1]; ++d) {
        const V own = value(d);
        for (int s = 0; s < pack.sources; ++s) {
          V& place = to[d + pack.shift[s]];
          place = select(lanes[s], pack.moved ? permute(own, pack.place[s]) : own, place);
        }
      }
    }
  };
  sum_of_rows<L>(at.blocks, r, r.force, sum);
  give(solver.w.qacc, pack.of, [&](int d) {
    V a = sum[d] * r.root[d];
    const auto row = dofs.factor + triangle(d, 0);
    const int last = p.start[d + 1] - 1;
    for (int k = p.start[d]; k < last; ++k) a = fma(-row[p.cols[k]], out[p.cols[k]], a);
    out[d] = a;
    return fma(at.rest, dofs.difference[d], dofs.smooth[d]) + a;
  });
  unsigned some = 0;
  for (int s = 0; s < pack.sources; ++s) some |= forces[s];
  if (some == 0) return;
  // Where the search has ended before, MuJoCo's forces are those at the rows.
  for (int i = 0; i < at.blocks.rows; ++i) r.target[i] = select(at.exact, r.force[i], row_force<L>(r, i, r.x[i]));
  sum_of_rows<L>(at.blocks, r, r.target, sum);
  for (int d = begin; d < end; ++d) {
    const V own = sum[d] / r.root[d];
    const auto row = dofs.factor + triangle(d, 0);
    const int last = p.start[d + 1] - 1;
    for (int k = p.start[d]; k < last; ++k) out[p.cols[k]] = fma(row[p.cols[k]], own, out[p.cols[k]]);
    out[d] = own;
  }
  give(solver.w.constraint, forces, [&](int d) { return V(out[d]); });
}

/// Solves a pack's problems: accelerations and iterations to their lanes, forces where the iterations were too few or
/// the rows are read.
template <class L>
COHORT_KERNEL void solve_pack(const ModelView& m, RowSolver<L>& solver, const RowPack<L>& pack) {
  using V = typename L::V;
  RowSpace<L>& r = solver.r;
  const typename L::M places = mask_of<L>(pack.places);
  const PackedDofs<L> dofs = packed_dofs<L>(m, solver, pack);
  RowSearch<L> at;
  RowsOfLanes<L> numbers(pack, m.row_space, at.blocks);
  for (int b = 0; b <= at.blocks.count; ++b) {
    if (at.blocks.block[b].stride == 0) continue;
    number_rows<L>(m, solver.c, r, solver.counts, pack, numbers, at.blocks, b);
    products_of_rows<L>(m, dofs, r, at.blocks, b);
  }
  at.energy = dofs.energy;
  start_rows<L>(m, r, at);
  const V enough = V(m.option.tolerance) / dofs.scale, most(static_cast<float>(m.option.iterations));
  at.live = places, at.exact = places & flip(places);
  V used(0.0f);
  for (int i = 0; i < m.option.iterations && any(at.live); ++i) {
    at.n = at.blocks.count > 1 ? at.blocks.rows : RowCounts<L>::most(pack.all, lane_bits(at.live));
    newton_target<L>(r, at);
    const V alpha = search_rows<L>(m, r, at);
    const auto moved = move_rows<L>(r, at, alpha, enough);
    used = select(moved, used + V(1.0f), used);
  }
  unsigned forces[kMostSources<L>];
  for (int s = 0; s < pack.sources; ++s) {
    const V own = pack.moved ? permute(used, pack.place[s]) : used;
    const auto lanes = mask_of<L>(pack.of[s]);
    solver.iterations = select(lanes & (own > solver.iterations), own, solver.iterations);
    const unsigned open = lane_bits(lanes & (own >= most));
    for (int t = 0; t < pack.trees.count; ++t) solver.open[pack.tree[s] + t] |= open & pack.lanes_of(s, t);
    forces[s] = solver.c.rows_are_read ? pack.of[s] : open;
  }
  end_rows<L>(m, solver, pack, at, dofs, forces);
  if (!solver.c.rows_are_read) return;
  numbers = RowsOfLanes<L>(pack, m.row_space, at.blocks);
  return_rows<L>(solver.c, r, solver.counts, pack, numbers);
}

/// Solves the trees of `lanes` that no row couples.
template <class L>
COHORT_KERNEL void solve_trees(const ModelView& m, const RowTrees& trees, RowSolver<L>& solver, unsigned lanes) {
  unsigned done = 0;  // bits of trees
  for (int first = 0; first < trees.count; ++first) {
    if ((done >> first & 1u) != 0) continue;
    int n = 0, tree[kMostSources<L>];
    unsigned wanted[kMostSources<L>];
    for (int t = first; t < trees.count && n < kMostSources<L>; ++t) {
      if (t > first && !trees.alike(m, first, t)) continue;
      done |= 1u << t;
      const unsigned some = lanes & solver.counts.with_rows[t] & ~solver.counts.coupled[t];
      if (some != 0) tree[n] = t, wanted[n] = some, ++n;
    }
    if (n == 1) solve_pack<L>(m, solver, RowPack<L>(trees, solver.counts, wanted[0], tree[0]));
    if (n <= 1) continue;
    const RowOrder<L> order(solver.counts, n, tree, wanted);
    for (int i = 0; i < order.count; i += L::kWidth) {
      RowPack<L> pack(trees, n, tree);
      order.take(i, solver.counts, pack);
      solve_pack<L>(m, solver, pack);
    }
  }
}

/// Where one tree of a lane has ended and another has not: w.constraint := M (a - a0) of the former.
template <class L>
COHORT_KERNEL void forces_of_ended_trees(const ModelView& m, const RowTrees& trees, const RowSolver<L>& solver,
                                         unsigned lanes) {
  unsigned open = 0;
  for (int t = 0; t < trees.count; ++t) open |= solver.open[t];
  lanes &= open;
  if (lanes == 0) return;
  Workspace<L>& w = solver.w;
  for (int d = 0; d < m.nv; ++d) solver.s.search[d] = w.qacc[d] - w.acc_smooth[d];
  multiply_symmetric<L>(m.nv, {m.pattern, m.pattern_start}, w.mass, solver.s.search, solver.s.Mv);
  for (int t = 0; t < trees.count; ++t) {
    const auto ended = mask_of<L>(lanes & ~solver.open[t]);
    for (int d = trees.dof[t]; d < trees.dof[t + 1]; ++d) {
      w.constraint[d] = select(ended, solver.s.Mv[d], w.constraint[d]);
    }
  }
}

/// From w.acc_smooth (and w.warm as warm start) to w.qacc (and w.constraint, as solve_constraints) for `lanes`, none of
/// which has more rows than m.row_space, and to their `iterations`, which are 0. w.factor holds M's factor, and the
/// rows end in the groups' pieces where they are read. `scale`: what the tolerance is relative to.
template <class L>
COHORT_KERNEL void solve_in_row_space(const ModelView& m, Workspace<L>& w, const Constraints<L>& c, SolverSpace<L>& s,
                                      RowSpace<L>& r, const RowTrees& trees, const RowCounts<L>& counts,
                                      typename L::M lanes, typename L::V scale, typename L::V& iterations) {
  using V = typename L::V;
  RowSolver<L> solver{w, c, s, r, counts, scale, iterations, {}, {}};
  begin_trees<L>(m, trees, solver);
  const unsigned all = lane_bits(lanes);
  if (trees.count == 1) {
    solve_pack<L>(m, solver, RowPack<L>(trees, counts, all));
    return;
  }
  // Trees without rows.
  for (int d = 0; d < m.nv; ++d) {
    w.qacc[d] = select(lanes, w.acc_smooth[d], w.qacc[d]);
    w.constraint[d] = select(lanes, V(0.0f), w.constraint[d]);
  }
  const unsigned coupled = all & counts.with_rows[trees.count];
  if (coupled != 0) solve_pack<L>(m, solver, RowPack<L>(trees, counts, coupled));
  solve_trees<L>(m, trees, solver, all);
  if (!c.rows_are_read) forces_of_ended_trees<L>(m, trees, solver, all);
}

}  // namespace cohort::sim
