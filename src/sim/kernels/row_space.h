/// Newton's method on the constraint rows themselves, for environments with few of them.
///
/// With accelerations a = a0 + M^-1 J' f, forces f determine all rows: J a - aref = b + A f with b = J a0 - aref and
/// A = J M^-1 J'. A row's force is -D x, limited to [low, high]: [0, inf) for limits and edges of pyramids, everything
/// for equalities, the loss for friction. Newton's target for the present pieces solves (A + 1 / D) f = -b over the
/// rows whose force is not at its limit; the search from the present rows to the target's is the one in the
/// accelerations (solver.h), since both are affine. An iteration then costs the cube of the rows that an environment
/// has instead of that of its dofs, and environments that are solved side by side share rows all the same where their
/// constraints differ: each numbers its own, and those with like numbers of rows are packed together (row_packs.h).
///
/// Elliptic cones are not piecewise quadratic: solver.h solves them, and environments with more rows than
/// ModelView::row_space.
#pragma once
#include "sim/kernels/block_space.h"
#include "sim/kernels/row_newton.h"

namespace cohort::sim {

/// What the tolerance is relative to.
template <class L>
COHORT_LANE typename L::V solver_scale(const ModelView& m, const Workspace<L>& w) {
  return weight_of<L>(m, w, m.option.scale, ratio_layout(m).scale);
}

/// The rows of the pack's lanes of a source back to piece[jar], where sensors look.
template <class L>
COHORT_KERNEL void return_rows(Constraints<L>& c, RowSpace<L>& r, const RowCounts<L>& counts, const RowProblem& problem,
                               const RowPack<L>& pack, int source, RowsOfLanes<L>& rows) {
  const int lists = problem.trees.count > 1 ? problem.trees.count + 1 : 1;
  for (int t = 0; t < lists; ++t) {
    for (int k = counts.first_group[problem.first + t]; k >= 0; k = c.group[k].next_of_tree) {
      const Group& g = c.group[k];
      const auto jar = c.pool + (g.at + g.layout.jar);
      for (unsigned left = g.lanes & pack.of[source]; left != 0; left &= left - 1) {
        const int lane = lowest_bit(left), place = pack.to[source][lane];
        const auto x = r.x + rows.first[t][place];
        rows.first[t][place] += g.edges;
        for (int e = 0; e < g.edges; ++e) set_lane(jar[e], lane, get_lane(x[e], place));
      }
    }
  }
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

/// The numbers of a pack's lanes over the problem's dofs, from the blocks they are of; and the energy of the start.
template <class L>
COHORT_KERNEL PackedDofs<L> packed_dofs(const ModelView& m, BlockSpace<L>* blocks, const RowTrees& trees,
                                        const RowPack<L>& pack) {
  using V = typename L::V;
  const int begin = trees.dof[0], end = trees.dof[trees.count];
  RowSpace<L>& r = blocks[0].r;
  PackedDofs<L> dofs{blocks[0].w.factor, blocks[0].w.acc_smooth, blocks[0].s.search, V(0.0f), V(0.0f)};
  auto last = blocks[0].w.warm;
  dofs.scale = into_pack<L>(pack, [&](int s) { return solver_scale<L>(m, blocks[s].w); });
  if (!pack.same) {
    dofs.factor = r.mass_factor, dofs.smooth = r.smooth, last = r.last;
    for (int d = begin; d < end; ++d) {
      for (int k = m.pattern_start[d]; k < m.pattern_start[d + 1]; ++k) {
        const int entry = triangle(d, m.pattern[k]);
        dofs.factor[entry] = into_pack<L>(pack, [&](int s) { return blocks[s].w.factor[entry]; });
      }
      dofs.smooth[d] = into_pack<L>(pack, [&](int s) { return blocks[s].w.acc_smooth[d]; });
      last[d] = into_pack<L>(pack, [&](int s) { return blocks[s].w.warm[d]; });
    }
  }
  for (int d = begin; d < end; ++d) r.root[d] = sqrt(V(dofs.factor[triangle(d, d)]));
  if (m.option.warmstart == 0) {
    for (int d = begin; d < end; ++d) dofs.difference[d] = V(0.0f);
    return dofs;
  }
  // M = L' D L.
  for (int d = begin; d < end; ++d) {
    dofs.difference[d] = last[d] - dofs.smooth[d];
    V moved = dofs.difference[d];
    const auto row = dofs.factor + triangle(d, 0);
    const int own = m.pattern_start[d + 1] - 1;
    for (int k = m.pattern_start[d]; k < own; ++k) moved = fma(row[m.pattern[k]], dofs.difference[m.pattern[k]], moved);
    const V share = moved / r.root[d];
    dofs.energy = fma(share, share, dofs.energy);
  }
  return dofs;
}

/// Where the search has ended: the accelerations of the pack's lanes to their blocks, and where with_force says so,
/// generalized forces: sum = halves' f = D^-1/2 L'^-1 J' f. Uses the first block's solver space.
template <class L>
COHORT_KERNEL void end_rows(const ModelView& m, BlockSpace<L>* blocks, const RowTrees& trees, const RowPack<L>& pack,
                            const RowSearch<L>& at, const PackedDofs<L>& dofs, bool with_force) {
  using V = typename L::V;
  const int begin = trees.dof[0], end = trees.dof[trees.count];
  RowSpace<L>& r = blocks[0].r;
  const Pattern p{m.pattern, m.pattern_start};
  const auto sum = blocks[0].s.grad, out = blocks[0].s.precond;
  typename L::M own[kMostSources<L>];
  for (int s = 0; s < pack.sources; ++s) own[s] = mask_of<L>(pack.of[s]);
  // `which` of a block's workspace := out.
  const auto give = [&](typename L::Ptr Workspace<L>::*which, int d, V value) {
    for (int s = 0; s < pack.sources; ++s) {
      if (pack.of[s] == 0) continue;
      const auto to = blocks[s].w.*which + d;
      to[0] = select(own[s], pick(value, value, pack.to[s]), V(to[0]));
    }
  };
  sum_of_rows<L>(at.blocks, r, r.force, sum);
  for (int d = begin; d < end; ++d) {
    V a = sum[d] * r.root[d];
    const auto row = dofs.factor + triangle(d, 0);
    const int last = p.start[d + 1] - 1;
    for (int k = p.start[d]; k < last; ++k) a = fma(-row[p.cols[k]], out[p.cols[k]], a);
    out[d] = a;
    give(&Workspace<L>::qacc, d, fma(at.rest, dofs.difference[d], dofs.smooth[d]) + a);
  }
  if (!with_force) return;
  // Where the search has ended before, MuJoCo's forces are those at the rows.
  if (any(mask_of<L>(pack.lanes) & flip(at.exact))) {
    for (int i = 0; i < at.blocks.rows; ++i) r.target[i] = select(at.exact, r.force[i], row_force<L>(r, i, r.x[i]));
    sum_of_rows<L>(at.blocks, r, r.target, sum);
  }
  for (int d = begin; d < end; ++d) {
    const V of_own = sum[d] / r.root[d];
    const auto row = dofs.factor + triangle(d, 0);
    const int last = p.start[d + 1] - 1;
    for (int k = p.start[d]; k < last; ++k) out[p.cols[k]] = fma(row[p.cols[k]], of_own, out[p.cols[k]]);
    out[d] = of_own;
  }
  for (int d = begin; d < end; ++d) give(&Workspace<L>::constraint, d, out[d]);
}

/// Solves the problem of a pack's lanes. An environment's iterations become those of its problem that takes most.
template <class L>
COHORT_KERNEL void solve_pack(const ModelView& m, BlockSpace<L>* blocks, const RowProblem& problem,
                              const RowPack<L>& pack, SolverPlan<L>* plans) {
  using V = typename L::V;
  RowSpace<L>& r = blocks[0].r;
  const bool rows_are_read = blocks[0].c.rows_are_read;
  const typename L::M lanes = mask_of<L>(pack.lanes);
  const PackedDofs<L> dofs = packed_dofs<L>(m, blocks, problem.trees, pack);
  RowSearch<L> at;
  RowsOfLanes<L> numbers(problem.trees, pack, m.row_space, at.blocks);
  for (int b = 0; b <= at.blocks.count; ++b) {
    if (at.blocks.block[b].stride == 0) continue;
    number_rows<L>(
        m, [&](int s) { return blocks[s].c.records; }, blocks[0].c.record_floats, r, plans, problem, pack, numbers,
        at.blocks, b);
    products_of_rows<L>(m, dofs, r, at.blocks, b);
  }
  at.energy = dofs.energy;
  start_rows<L>(m, r, at);
  const V enough = V(m.option.tolerance) / dofs.scale, most(static_cast<float>(m.option.iterations));
  at.live = lanes, at.exact = lanes & flip(lanes);
  V used(0.0f);
  for (int i = 0; i < m.option.iterations && any(at.live); ++i) {
    at.n = at.blocks.count > 1 ? at.blocks.rows : RowPack<L>::most(pack.all, lane_bits(at.live));
    newton_target<L>(r, at);
    const V alpha = search_rows<L>(m, r, at);
    const auto moved = move_rows<L>(r, at, alpha, enough);
    used = select(moved, used + V(1.0f), used);
  }
  end_rows<L>(m, blocks, problem.trees, pack, at, dofs, rows_are_read || any(lanes & (used >= most)));
  for (int s = 0; s < pack.sources; ++s) {
    if (pack.of[s] == 0) continue;
    const V own = pick(used, used, pack.to[s]);
    V& iterations = plans[s].iterations;
    iterations = select(mask_of<L>(pack.of[s]) & (own > iterations), own, iterations);
    if (rows_are_read) return_rows<L>(blocks[s].c, r, plans[s].rows, problem, pack, s, numbers);
  }
}

/// From w.acc_smooth (and w.warm as warm start) to w.qacc (and w.constraint, as end_constraints) of the lanes `few` of
/// n blocks, none of which has more rows than m.row_space, and to their iterations. w.factor holds M's factor, and the
/// rows end in the groups' pieces where they are read.
template <class L>
COHORT_KERNEL void solve_in_row_space(const ModelView& m, BlockSpace<L>* blocks, int n, const RowTrees& trees,
                                      SolverPlan<L>* plans) {
  using V = typename L::V;
  unsigned lanes[kMostSources<L>], whole[kMostSources<L>];  // those that can be taken apart, and the others
  for (int s = 0; s < n; ++s) {
    Workspace<L>& w = blocks[s].w;
    lanes[s] = lane_bits(plans[s].few), whole[s] = 0;
    for (unsigned left = lanes[s]; left != 0 && trees.count > 1; left &= left - 1) {
      const int lane = lowest_bit(left);
      if (plans[s].rows.in_tree[trees.count][lane] > 0) whole[s] |= 1u << lane;
    }
    lanes[s] &= ~whole[s];
    // Trees without rows.
    for (int d = 0; d < m.nv; ++d) {
      w.qacc[d] = select(plans[s].few, w.acc_smooth[d], w.qacc[d]);
      w.constraint[d] = select(plans[s].few, V(0.0f), w.constraint[d]);
    }
  }
  for (int t = 0; t <= trees.count; ++t) {
    const RowProblem problem(trees, t);
    unsigned wanted[kMostSources<L>], all = 0;
    for (int s = 0; s < n; ++s) {
      wanted[s] = t < trees.count ? 0 : whole[s];
      for (unsigned left = t < trees.count ? lanes[s] : 0; left != 0; left &= left - 1) {
        const int lane = lowest_bit(left);
        if (plans[s].rows.in_tree[t][lane] > 0) wanted[s] |= 1u << lane;
      }
      all |= wanted[s];
    }
    if (all == 0) continue;
    if (n == 1) {
      solve_pack<L>(m, blocks, problem, same_lanes<L>(problem, plans[0], wanted[0]), plans);
      continue;
    }
    const RowOrder<L> order(problem, plans, wanted, n);
    for (int i = 0; i < order.count; i += L::kWidth) {
      solve_pack<L>(m, blocks, problem, order.pack(i, problem, plans, n), plans);
    }
  }
}

}  // namespace cohort::sim
