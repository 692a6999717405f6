/// Which islands are solved side by side in the row space. The trees of an environment that rows couple are one
/// island, each of the others is one of its own, as MuJoCo's islands are: those of one tree of a block's environments
/// are solved together, lane by lane, and so are those of the coupled ones.
#pragma once
#include "sim/kernels/solve/row_blocks.h"

namespace cohort::sim {

/// What a block has its environments solved with in the row space.
template <class L>
struct RowPart {
  RowCounts<L> counts;
  unsigned lanes = 0;                       ///< that are solved in the row space
  typename L::V scale;                      ///< what the tolerance is relative to
  typename L::V iterations;                 ///< of the island of a lane that takes most
  typename L::V energy[kMostRowTrees + 1];  ///< (a_warm - a0)' M (a_warm - a0) of every tree, and of the coupled ones
  /// Lanes whose island of a tree did not end before the iterations did; they have their forces in w.constraint.
  unsigned open[kMostRowTrees];
};

/// An island per lane: of one tree, or of the trees that rows couple.
template <class L>
struct RowIslands {
  RowTrees trees;  ///< whose dofs the islands may have
  int first;       ///< the model's tree that is trees' first
  int lists;       ///< of groups (RowCounts::first_group): one for every tree and, of coupled ones, what couples them
  unsigned lanes;  ///< that have an island
  /// Lanes that have a list's groups and, where there are several, its tree's dofs.
  unsigned having[kMostRowTrees + 1];
  int rows[kMostRowTrees + 1][L::kWidth], all[L::kWidth];  ///< of the lists, and of all

  /// Of tree t, in the lanes that have rows there and none that couple it.
  COHORT_LANE static RowIslands of_tree(const RowTrees& all_trees, const RowPart<L>& part, int t) {
    RowIslands p{RowTrees(all_trees, t, 1), t, 1, part.lanes & part.counts.with_rows[t] & ~part.counts.coupled[t]};
    p.having[0] = p.lanes;
    p.count_rows(part.counts);
    return p;
  }
  /// Of the trees that rows couple, in the lanes that have such rows.
  COHORT_LANE static RowIslands of_coupled(const RowTrees& trees, const RowPart<L>& part) {
    RowIslands p{trees, 0, trees.count + 1, part.lanes & part.counts.with_rows[trees.count]};
    for (int t = 0; t < trees.count; ++t) p.having[t] = p.lanes & part.counts.coupled[t];
    p.having[trees.count] = p.lanes;
    p.count_rows(part.counts);
    return p;
  }

 private:
  COHORT_LANE void count_rows(const RowCounts<L>& counts) {
    for (int lane = 0; lane < L::kWidth; ++lane) {
      all[lane] = 0;
      for (int t = 0; t <= trees.count; ++t) {
        const bool has = t < lists && (having[t] >> lane & 1u) != 0;
        rows[t][lane] = has ? counts.in_tree[first + t][lane] : 0;
        all[lane] += rows[t][lane];
      }
    }
  }
};

/// Numbers the rows of the lanes' islands.
template <class L>
struct RowsOfLanes {
  bool apart;                              ///< every tree has a block of its own
  int next[kMostRowTrees + 1][L::kWidth];  ///< row of a list and lane

  /// An island's rows lie one after the other where all blocks together would be more than `capacity`: then there is
  /// one block. Which of both it is changes no bit: the rows keep their order, and what is left out are zeros.
  COHORT_LANE RowsOfLanes(const RowIslands<L>& p, int capacity, RowBlocks& blocks) {
    const RowTrees& trees = p.trees;
    const int begin = trees.dof[0], end = trees.dof[trees.count];
    blocks.rows = 0;
    for (int t = 0; t <= trees.count; ++t) {
      const bool coupling = t == trees.count;
      blocks.across = blocks.rows;
      blocks.rows += RowCounts<L>::most(p.rows[t], p.lanes);
      blocks.block[t] = {
          blocks.across, blocks.rows, coupling ? begin : trees.dof[t], coupling ? end : trees.dof[t + 1], 0, 0};
    }
    blocks.count = trees.count;
    apart = trees.count > 1 && blocks.rows <= capacity;
    if (!apart) {
      const int most = RowCounts<L>::most(p.all, p.lanes);
      blocks.count = 1, blocks.across = blocks.rows = most;
      blocks.block[0] = {0, most, begin, end, 0, 0};
      blocks.block[1] = {most, most, begin, end, 0, 0};
    }
    blocks.place();
    for (int i = 0; i < L::kWidth; ++i) {
      int row = 0;
      for (int t = 0; t <= trees.count; ++t) {
        next[t][i] = apart ? blocks.block[t].row : row;
        row += p.rows[t][i];
      }
    }
  }
};

/// f(list, group) for the groups of the lists from `begin` to `end`, in the order of the rows.
template <class L, class F>
COHORT_LANE void each_group(const Constraints<L>& c, const RowPart<L>& part, const RowIslands<L>& p, int begin, int end,
                            F f) {
  for (int t = begin; t < end; ++t) {
    if (p.having[t] == 0) continue;
    for (int k = part.counts.first_group[p.first + t]; k >= 0; k = c.group[k].next_of_tree) {
      if ((c.group[k].lanes & p.having[t]) != 0) f(t, c.group[k]);
    }
  }
}

}  // namespace cohort::sim
