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
COHORT_KERNEL void return_rows(RowSpace<L>& r, const RowPart<L>* parts, const RowPack<L>& pack, RowsOfLanes<L>& rows) {
  each_group<L>(parts, pack, 0, pack.lists, [&](int s, int t, const Constraints<L>& c, const Group& g) {
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

/// What the blocks' problems are solved with.
template <class L>
struct RowSolver {
  RowSpace<L>& r;
  typename L::Ptr sum, out;  ///< (nv) of a pack
  RowPart<L>* parts;         ///< of the blocks
};

/// The warm start's difference, and its energies: with M = L' D L, the squares of L (a_warm - a0) times D.
template <class L>
COHORT_KERNEL void begin_part(const ModelView& m, const RowTrees& trees, RowPart<L>& part) {
  using V = typename L::V;
  const Workspace<L>& w = *part.w;
  const auto difference = part.difference;
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

/// Gathers M's factor, a0 and the difference of the warm start from the lanes of kSources sources to a pack's places;
/// of a tree that no problem has, zeros.
template <class L, int kSources>
COHORT_LANE void gather_dofs(const ModelView& m, const RowPart<L>* parts, const RowPack<L>& pack, RowSpace<L>& r) {
  using V = typename L::V;
  typename L::M at[kSources];
  const RowPart<L>* part[kSources];
  for (int s = 0; s < kSources; ++s) at[s] = pack.at[s], part[s] = parts + pack.part[s];
  const int* const lane = pack.lane;
  for (int t = 0; t < pack.trees.count; ++t) {
    const bool none = !pack.has(t);
    int shift[kSources];
    for (int s = 0; s < kSources; ++s) shift[s] = pack.shift[s][t];
    const auto join = [&](auto value) {
      if (none) return V(0.0f);
      V v = permute(V(value(0)), lane);
      for (int s = 1; s < kSources; ++s) v = select(at[s], permute(V(value(s)), lane), v);
      return v;
    };
    for (int d = pack.trees.dof[t]; d < pack.trees.dof[t + 1]; ++d) {
      // The rows begin at the trees' first dofs: their entries have the same columns then.
      typename L::Ptr row[kSources];
      for (int s = 0; s < kSources; ++s) row[s] = part[s]->w->factor + (triangle(d + shift[s], 0) + shift[s]);
      const auto to = r.mass_factor + triangle(d, 0);
      for (int k = m.pattern_start[d]; k < m.pattern_start[d + 1]; ++k) {
        const int j = m.pattern[k];
        to[j] = join([&](int s) { return row[s][j]; });
      }
      r.smooth[d] = join([&](int s) { return part[s]->w->acc_smooth[d + shift[s]]; });
      r.difference[d] = join([&](int s) { return part[s]->difference[d + shift[s]]; });
    }
  }
}

/// A pack's numbers over its dofs: where they are, or gathered.
template <class L>
COHORT_KERNEL PackedDofs<L> packed_dofs(const ModelView& m, const RowSolver<L>& solver, const RowPack<L>& pack) {
  using V = typename L::V;
  const RowPart<L>* const parts = solver.parts;
  const RowPart<L>& first = parts[pack.part[0]];
  RowSpace<L>& r = solver.r;
  const int begin = pack.trees.dof[0], end = pack.trees.dof[pack.trees.count];
  PackedDofs<L> dofs{first.w->factor, first.w->acc_smooth, first.difference, V(0.0f), V(0.0f)};
  dofs.scale = pack.gather([&](int s) { return parts[pack.part[s]].scale; });
  // That of coupled trees stands behind the others.
  dofs.energy = pack.gather([&](int s) { return parts[pack.part[s]].energy[pack.tree[s][pack.lists - 1]]; });
  if (L::kWidth > 1 && pack.moved) {
    dofs.factor = r.mass_factor, dofs.smooth = r.smooth, dofs.difference = r.difference;
    with_count<kMostSources<L>>(pack.sources, [&](auto n) { gather_dofs<L, decltype(n)::kDim>(m, parts, pack, r); });
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
  const auto sum = solver.sum, out = solver.out;
  const RowPart<L>* const parts = solver.parts;
  // Tree by tree what its dofs have at the pack's places, value(d), to those of `some` lanes of every source that are
  // in the pack; to(workspace): where its block has them.
  const auto give = [&](auto to, const unsigned* some, auto value) {
    for (int t = 0; t < pack.trees.count; ++t) {
      typename L::M lanes[kMostSources<L>] = {};
      for (int s = 0; s < pack.sources; ++s) lanes[s] = mask_of<L>(some[s] & pack.lanes_of(s, t));
      for (int d = pack.trees.dof[t]; d < pack.trees.dof[t + 1]; ++d) {
        const V own = value(d);
        for (int s = 0; s < pack.sources; ++s) {
          V& place = to(*parts[pack.part[s]].w)[d + pack.shift[s][t]];
          place = select(lanes[s], pack.moved ? permute(own, pack.place[s]) : own, place);
        }
      }
    }
  };
  sum_of_rows<L>(at.blocks, r, r.force, sum);
  give([](const Workspace<L>& w) { return w.qacc; }, pack.of,
       [&](int d) {
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
  give([](const Workspace<L>& w) { return w.constraint; }, forces, [&](int d) { return V(out[d]); });
}

/// Solves a pack's problems: accelerations and iterations to their lanes, forces where the iterations were too few or
/// the rows are read.
template <class L>
COHORT_KERNEL void solve_pack(const ModelView& m, RowSolver<L>& solver, const RowPack<L>& pack) {
  using V = typename L::V;
  RowSpace<L>& r = solver.r;
  RowPart<L>* const parts = solver.parts;
  const typename L::M places = mask_of<L>(pack.places);
  const PackedDofs<L> dofs = packed_dofs<L>(m, solver, pack);
  RowSearch<L> at;
  RowsOfLanes<L> numbers(pack, m.row_space, at.blocks);
  for (int b = 0; b <= at.blocks.count; ++b) {
    if (at.blocks.block[b].stride == 0) continue;
    number_rows<L>(m, r, parts, pack, numbers, at.blocks, b);
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
  const bool read = parts[pack.part[0]].c->rows_are_read;
  unsigned forces[kMostSources<L>];
  for (int s = 0; s < pack.sources; ++s) {
    RowPart<L>& part = parts[pack.part[s]];
    const V own = pack.moved ? permute(used, pack.place[s]) : used;
    const auto lanes = mask_of<L>(pack.of[s]);
    part.iterations = select(lanes & (own > part.iterations), own, part.iterations);
    const unsigned open = lane_bits(lanes & (own >= most));
    for (int t = 0; t < pack.trees.count; ++t) {
      if (pack.tree[s][t] >= 0) part.open[pack.tree[s][t]] |= open & pack.lanes_of(s, t);
    }
    forces[s] = read ? pack.of[s] : open;
  }
  end_rows<L>(m, solver, pack, at, dofs, forces);
  if (!read) return;
  numbers = RowsOfLanes<L>(pack, m.row_space, at.blocks);
  return_rows<L>(r, parts, pack, numbers);
}

/// Solves the problems of `wanted`: those of one source in their own lanes.
template <class L>
COHORT_KERNEL void solve_sources(const ModelView& m, const RowTrees& trees, RowSolver<L>& solver,
                                 const RowSources<L>& wanted) {
  if (wanted.count == 0) return;
  // Trees of slots of the same names stay in their lanes.
  if (wanted.count == 1 && (!wanted.coupled || (wanted.trees[0] & (wanted.trees[0] + 1)) == 0)) {
    RowPack<L> pack(trees, wanted, wanted.slots(0), false);
    pack.join(trees, wanted, 0);
    for (unsigned left = wanted.wanted[0]; left != 0; left &= left - 1) {
      const int lane = lowest_bit(left);
      pack.take(solver.parts[wanted.part[0]].counts, 0, lane, lane);
    }
    solve_pack<L>(m, solver, pack);
    return;
  }
  const RowOrder<L> order(trees, solver.parts, wanted);
  for (int i = 0; i < order.count;) {
    RowPack<L> pack(trees, wanted, order.slots(i, wanted), true);
    i += order.take(i, trees, solver.parts, wanted, pack);
    solve_pack<L>(m, solver, pack);
  }
}

/// Solves the trees of a block that no row couples: those that are alike together.
template <class L>
COHORT_KERNEL void solve_trees(const ModelView& m, const RowTrees& trees, RowSolver<L>& solver, int of_part) {
  const RowPart<L>& part = solver.parts[of_part];
  unsigned done = 0;  // bits of trees
  for (int first = 0; first < trees.count; ++first) {
    if ((done >> first & 1u) != 0) continue;
    RowSources<L> wanted;
    for (int t = first; t < trees.count && wanted.count < kMostSources<L>; ++t) {
      if (trees.kind[t] != trees.kind[first]) continue;
      done |= 1u << t;
      wanted.add(of_part, 1u << t, part.lanes & part.counts.with_rows[t] & ~part.counts.coupled[t]);
    }
    solve_sources<L>(m, trees, solver, wanted);
  }
}

/// Where one tree of a lane has ended and another has not: w.constraint := M (a - a0) of the former. Uses the part's
/// difference, and `product`.
template <class L>
COHORT_KERNEL void forces_of_ended_trees(const ModelView& m, const RowTrees& trees, typename L::Ptr product,
                                         const RowPart<L>& part) {
  unsigned open = 0;
  for (int t = 0; t < trees.count; ++t) open |= part.open[t];
  const unsigned lanes = part.lanes & open;
  if (lanes == 0) return;
  Workspace<L>& w = *part.w;
  for (int d = 0; d < m.nv; ++d) part.difference[d] = w.qacc[d] - w.acc_smooth[d];
  multiply_symmetric<L>(m.nv, {m.pattern, m.pattern_start}, w.mass, part.difference, product);
  for (int t = 0; t < trees.count; ++t) {
    const auto ended = mask_of<L>(lanes & ~part.open[t]);
    for (int d = trees.dof[t]; d < trees.dof[t + 1]; ++d) {
      w.constraint[d] = select(ended, product[d], w.constraint[d]);
    }
  }
}

/// Part i of the blocks': from w.acc_smooth (and w.warm as warm start) to w.qacc (and w.constraint, as
/// begin_constraints) for part.lanes, none of which has more rows than m.row_space, and to their part.iterations, which
/// are 0; but for trees that rows couple, which wait for solve_coupled. w.factor holds M's factor, and the rows end in
/// the groups' pieces where they are read.
template <class L>
COHORT_KERNEL void solve_uncoupled(const ModelView& m, const RowTrees& trees, const SolverSpace<L>& s, RowSpace<L>& r,
                                   RowPart<L>* parts, int i) {
  using V = typename L::V;
  RowPart<L>& part = parts[i];
  RowSolver<L> solver{r, s.grad, s.precond, parts};
  begin_part<L>(m, trees, part);
  if (trees.count == 1) {
    RowSources<L> wanted;
    wanted.add(i, 1u, part.lanes);
    solve_sources<L>(m, trees, solver, wanted);
    return;
  }
  // Trees without rows.
  Workspace<L>& w = *part.w;
  const auto lanes = mask_of<L>(part.lanes);
  for (int d = 0; d < m.nv; ++d) {
    w.qacc[d] = select(lanes, w.acc_smooth[d], w.qacc[d]);
    w.constraint[d] = select(lanes, V(0.0f), w.constraint[d]);
  }
  solve_trees<L>(m, trees, solver, i);
}

/// The coupled trees of `count` parts, which then are solved.
template <class L>
COHORT_KERNEL void solve_coupled(const ModelView& m, const RowTrees& trees, const SolverSpace<L>& s, RowSpace<L>& r,
                                 RowPart<L>* parts, int count) {
  if (trees.count == 1) return;
  RowSolver<L> solver{r, s.grad, s.precond, parts};
  RowSources<L> wanted;
  wanted.coupled = true;
  const bool any_slot = L::kWidth > 1 && trees.all_alike();
  for (int i = 0; i < count; ++i) {
    if (parts[i].lanes == 0) continue;
    const unsigned* const coupled = parts[i].counts.coupled;
    for (unsigned left = parts[i].lanes & parts[i].counts.with_rows[trees.count]; left != 0;) {
      // Those whose rows couple the same trees, or all.
      unsigned of_trees = (1u << trees.count) - 1, same = left;
      for (int t = 0; t < trees.count && any_slot; ++t) {
        const bool has = (coupled[t] >> lowest_bit(left) & 1u) != 0;
        same &= has ? coupled[t] : ~coupled[t];
        if (!has) of_trees &= ~(1u << t);
      }
      wanted.add(i, of_trees, same);
      left &= ~same;
    }
  }
  solve_sources<L>(m, trees, solver, wanted);
  for (int i = 0; i < count; ++i) {
    if (parts[i].lanes != 0 && !parts[i].c->rows_are_read) forces_of_ended_trees<L>(m, trees, s.Mv, parts[i]);
  }
}

}  // namespace cohort::sim
