/// How the rows of environments that are solved side by side are numbered (row_space.h). Each numbers its own: those of
/// its first tree, of its second, ..., then those that couple trees. Rows of different trees have no product, so that
/// most numbers of a scene of several robots are zeros; where the trees' rows begin at the same places in every lane,
/// the kernels leave them out.
#pragma once
#include "sim/kernels/constraint/groups.h"

namespace cohort::sim {

/// A mask of the lanes whose bits are set.
template <class L>
COHORT_LANE typename L::M mask_of(unsigned lanes) {
  return lanes_of(lanes, static_cast<typename L::M*>(nullptr));
}

/// Trees that are told apart; the last one takes those beyond.
inline constexpr int kMostRowTrees = 8;

/// The trees' dofs: tree t has those from dof[t] to dof[t + 1].
struct RowTrees {
  int count = 0;
  int dof[kMostRowTrees + 1];

  COHORT_LANE explicit RowTrees(const ModelView& m) {
    // A tree's first dof has no ancestors.
    for (int d = 0; d < m.nv && count < kMostRowTrees; ++d) {
      if (m.pattern_start[d + 1] - m.pattern_start[d] == 1) dof[count++] = d;
    }
    dof[count] = m.nv;
  }
  /// Some of them, from tree t on.
  COHORT_LANE RowTrees(const RowTrees& all, int t, int some) : count(some) {
    for (int i = 0; i <= some; ++i) dof[i] = all.dof[t + i];
  }

  /// The tree of dof d.
  COHORT_LANE int of(int d) const {
    int tree = 0;
    while (tree + 1 < count && d >= dof[tree + 1]) ++tree;
    return tree;
  }
  /// The tree that has all of a group's dofs, or `count`; a group without dofs counts to the first.
  COHORT_LANE int of(const ModelView& m, const Group& g) const {
    if (count == 1 || g.dofs == 0) return 0;
    const int* dofs = m.row_dof + g.first_dof;
    const int tree = of(dofs[0]);
    if (g.pair >= 0) return dofs[g.dofs - 1] < dof[tree + 1] ? tree : count;  // a contact's dofs rise
    for (int a = 0; a < g.dofs; ++a) {
      if (dofs[a] < dof[tree] || dofs[a] >= dof[tree + 1]) return count;
    }
    return tree;
  }
};

/// Rows of every lane, by trees; the last ones are those that couple trees.
template <class L>
struct RowCounts {
  int of[L::kWidth], in_tree[kMostRowTrees + 1][L::kWidth];
  int first_group[kMostRowTrees + 1];     ///< of each tree, or -1; Group::next_of_tree leads on
  unsigned with_rows[kMostRowTrees + 1];  ///< lanes that have any
  unsigned coupled[kMostRowTrees];        ///< lanes where some row couples the tree with another

  COHORT_LANE void count(const ModelView& m, const RowTrees& trees, const Constraints<L>& c) {
    for (int lane = 0; lane < L::kWidth; ++lane) {
      of[lane] = 0;
      for (int t = 0; t <= trees.count; ++t) in_tree[t][lane] = 0;
    }
    for (int t = 0; t <= trees.count; ++t) first_group[t] = -1, with_rows[t] = 0;
    for (unsigned& lanes : coupled) lanes = 0;
    for (int k = c.count - 1; k >= 0; --k) {
      Group& g = c.group[k];
      const int t = trees.of(m, g);
      int* const tree = in_tree[t];
      // Without a branch per lane, which would be predicted badly; so below.
      for (int lane = 0; lane < L::kWidth; ++lane) tree[lane] += static_cast<int>(g.lanes >> lane & 1u) * g.edges;
      g.next_of_tree = first_group[t], first_group[t] = k;
      if (g.edges > 0) with_rows[t] |= g.lanes;
      const int* dofs = m.row_dof + g.first_dof;
      for (int a = 0; t == trees.count && a < g.dofs; ++a) coupled[trees.of(dofs[a])] |= g.lanes;
    }
    for (int t = 0; t <= trees.count; ++t) {
      for (int lane = 0; lane < L::kWidth; ++lane) of[lane] += in_tree[t][lane];
    }
  }
  /// The most that a lane of `lanes` has.
  COHORT_LANE static int most(const int* rows, unsigned lanes) {
    int most = 0;
    for (int lane = 0; lane < L::kWidth; ++lane) {
      const int own = static_cast<int>(lanes >> lane & 1u) * rows[lane];
      most = own > most ? own : most;
    }
    return most;
  }
  /// Lanes with at most n rows.
  COHORT_LANE typename L::M at_most(int n) const {
    unsigned fits = 0;
    for (int lane = 0; lane < L::kWidth; ++lane) fits |= static_cast<unsigned>(of[lane] <= n) << lane;
    return mask_of<L>(fits);
  }
};

/// Rows [row, end) with the dofs [dof, dof_end) that they may have. Row i of dof d is entry at + d * stride + i of
/// RowSpace::scaled.
struct RowBlock {
  int row, end, dof, dof_end;
  int at, stride;

  COHORT_LANE int entry(int d, int i) const { return at + d * stride + i; }
};

/// A block per tree, and behind them block[count]: the rows from `across` on, which couple trees.
struct RowBlocks {
  int count, rows, across;
  RowBlock block[kMostRowTrees + 1];

  /// Where the blocks' entries lie, one block behind the other.
  COHORT_LANE void place() {
    int used = 0;
    for (int b = 0; b <= count; ++b) {
      RowBlock& block_b = block[b];
      block_b.stride = block_b.end - block_b.row;
      block_b.at = used - block_b.dof * block_b.stride - block_b.row;
      used += (block_b.dof_end - block_b.dof) * block_b.stride;
    }
  }
};

/// Rows of a list that rises, by blocks: those of block b are from begin[b] to begin[b + 1], those that couple trees
/// from begin[blocks.count] on.
struct RowList {
  int count = 0;
  int row[kMostRowSpaceRows];
  int begin[kMostRowTrees + 1];

  COHORT_LANE void split(const RowBlocks& blocks) {
    int k = 0;
    for (int b = 0; b < blocks.count; ++b) {
      begin[b] = k;
      while (k < count && row[k] < blocks.block[b].end) ++k;
    }
    begin[blocks.count] = k;
  }
};

}  // namespace cohort::sim
