/// Which problems are solved side by side in the row space. The trees of an environment that rows couple are one
/// problem, each of the others is one of its own, as MuJoCo's islands are. What a lane of a solve costs is the rows of
/// the fullest lane beside it: so problems of trees whose dofs hang together alike, several robots of one kind, leave
/// their environments' lanes and share packs with those that have about as many rows. Who is beside whom changes no
/// bit: a problem's rows and their order are its own.
#pragma once
#include "sim/kernels/row_blocks.h"

namespace cohort::sim {

/// Trees that may share packs. A single lane has nobody to share with.
template <class L>
inline constexpr int kMostSources = L::kWidth == 1 ? 1 : kMostRowTrees;

/// A mask of the lanes whose bits are set.
template <class L>
COHORT_LANE typename L::M mask_of(unsigned lanes) {
  alignas(64) float is_set[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) is_set[i] = (lanes >> i & 1u) != 0 ? 1.0f : 0.0f;
  return load(is_set, static_cast<typename L::V*>(nullptr)) > typename L::V(0.0f);
}

/// Whether some of the model's trees are alike.
template <class L>
COHORT_LANE bool trees_may_share(const ModelView& m) {
  const RowTrees trees(m);
  for (int u = 1; u < trees.count && kMostSources < L >> 1; ++u) {
    for (int t = 0; t < u; ++t) {
      if (trees.alike(m, t, u)) return true;
    }
  }
  return false;
}

/// Problems, one per lane. A place is a lane of the pack, a lane one of the block of environments.
template <class L>
struct RowPack {
  RowTrees trees;                                     ///< whose rows are solved; of trees that share packs, the first
  int lists = 1;                                      ///< of groups per source (RowCounts::first_group)
  int sources = 1;                                    ///< trees that problems may be of
  bool moved = false;                                 ///< places differ from lanes
  int tree[kMostSources<L>];                          ///< of a source
  int shift[kMostSources<L>];                         ///< what its dofs are called more than those of the first
  unsigned of[kMostSources<L>];                       ///< its lanes that are in the pack
  unsigned part[kMostRowTrees + 1];                   ///< where there are several lists: lanes that have them
  typename L::M at[kMostSources<L>];                  ///< their places
  unsigned places;                                    ///< that are taken
  alignas(64) int lane[L::kWidth];                    ///< at a place
  alignas(64) int place[kMostSources<L>][L::kWidth];  ///< of a source's lane
  /// Rows of the places by lists of groups (RowCounts::first_group), and of all.
  int rows[kMostRowTrees + 1][L::kWidth], all[L::kWidth];

  /// `lanes` at their own places: their trees that rows couple or, where `one` is a tree, its problems. Of a model with
  /// one tree all is the tree's.
  COHORT_LANE RowPack(const RowTrees& row_trees, const RowCounts<L>& counts, unsigned lanes, int one = -1)
      : trees(one < 0 ? row_trees : RowTrees(row_trees, one)), lists(one < 0 ? row_trees.count + 1 : 1), places(lanes) {
    tree[0] = one < 0 ? 0 : one, shift[0] = 0, of[0] = lanes;
    for (int i = 0; i < L::kWidth; ++i) {
      lane[i] = place[0][i] = i;
      for (int t = 0; t <= trees.count; ++t) rows[t][i] = 0;
      all[i] = 0;
    }
    for (int t = 0; t < lists; ++t) {
      part[t] = lists == 1 || t == trees.count ? lanes : lanes & counts.coupled[t];
      for (unsigned left = part[t]; left != 0; left &= left - 1) {
        const int i = lowest_bit(left);
        all[i] += rows[t][i] = counts.in_tree[tree[0] + t][i];
      }
    }
  }
  /// Nobody yet; sources are trees like the first one.
  COHORT_LANE RowPack(const RowTrees& row_trees, int n, const int* tree_of)
      : trees(row_trees, tree_of[0]), sources(n), moved(true), places(0) {
    for (int s = 0; s < n; ++s) {
      tree[s] = tree_of[s], shift[s] = row_trees.dof[tree_of[s]] - row_trees.dof[tree_of[0]], of[s] = 0;
      for (int i = 0; i < L::kWidth; ++i) place[s][i] = 0;
    }
    for (int i = 0; i < L::kWidth; ++i) lane[i] = rows[0][i] = rows[1][i] = all[i] = 0;
  }

  /// The lanes of source s that have the groups of list t, and of whole environments the dofs of tree t.
  COHORT_LANE unsigned lanes_of(int s, int t) const { return lists > 1 ? part[t] : of[s]; }

  /// The values at the pack's places; value(s): those of source s, in the block's lanes.
  template <class Of>
  COHORT_LANE typename L::V gather(Of value) const {
    using V = typename L::V;
    if (!moved) return value(0);
    V v = permute(V(value(0)), lane);
    for (int s = 1; s < sources; ++s) v = select(at[s], permute(V(value(s)), lane), v);
    return v;
  }
};

/// The problems of trees that may share packs, those with the most rows first.
template <class L>
struct RowOrder {
  int count = 0;
  short source[kMostSources<L> * L::kWidth], lane[kMostSources<L> * L::kWidth];

  /// wanted: lanes of each of the n trees.
  COHORT_LANE RowOrder(const RowCounts<L>& counts, int n, const int* tree, const unsigned* wanted) {
    // Counted, then put where they belong.
    int begin[kMostRowSpaceRows + 1];
    for (int& i : begin) i = 0;
    for (int s = 0; s < n; ++s) {
      for (unsigned left = wanted[s]; left != 0; left &= left - 1) ++begin[counts.in_tree[tree[s]][lowest_bit(left)]];
    }
    for (int rows = kMostRowSpaceRows; rows >= 0; --rows) {
      const int some = begin[rows];
      begin[rows] = count;
      count += some;
    }
    for (int s = 0; s < n; ++s) {
      for (unsigned left = wanted[s]; left != 0; left &= left - 1) {
        const int one = lowest_bit(left), i = begin[counts.in_tree[tree[s]][one]]++;
        source[i] = static_cast<short>(s), lane[i] = static_cast<short>(one);
      }
    }
  }
  /// Those from the first on, as many as there are places, into a pack that has nobody yet.
  COHORT_LANE void take(int first, const RowCounts<L>& counts, RowPack<L>& p) const {
    unsigned at[kMostSources<L>];
    for (int s = 0; s < p.sources; ++s) at[s] = 0;
    for (int i = 0; i < L::kWidth && first + i < count; ++i) {
      const int s = source[first + i], one = lane[first + i];
      p.lane[i] = one, p.place[s][one] = i;
      p.of[s] |= 1u << one, at[s] |= 1u << i, p.places |= 1u << i;
      p.rows[0][i] = p.all[i] = counts.in_tree[p.tree[s]][one];
    }
    for (int s = 0; s < p.sources; ++s) p.at[s] = mask_of<L>(at[s]);
  }
};

/// Numbers the rows of a pack's problems.
template <class L>
struct RowsOfLanes {
  bool apart;                              ///< every tree has a block of its own
  int next[kMostRowTrees + 1][L::kWidth];  ///< row of a list and place

  /// A problem's rows lie one after the other where all blocks together would be more than `capacity`: then there is
  /// one block. Which of both it is changes no bit: the rows keep their order, and what is left out are zeros.
  COHORT_LANE RowsOfLanes(const RowPack<L>& pack, int capacity, RowBlocks& blocks) {
    const RowTrees& trees = pack.trees;
    const int begin = trees.dof[0], end = trees.dof[trees.count];
    blocks.rows = 0;
    for (int t = 0; t <= trees.count; ++t) {
      const bool coupling = t == trees.count;
      blocks.across = blocks.rows;
      blocks.rows += RowCounts<L>::most(pack.rows[t], pack.places);
      blocks.block[t] = {
          blocks.across, blocks.rows, coupling ? begin : trees.dof[t], coupling ? end : trees.dof[t + 1], 0, 0};
    }
    blocks.count = trees.count;
    apart = trees.count > 1 && blocks.rows <= capacity;
    if (!apart) {
      const int most = RowCounts<L>::most(pack.all, pack.places);
      blocks.count = 1, blocks.across = blocks.rows = most;
      blocks.block[0] = {0, most, begin, end, 0, 0};
      blocks.block[1] = {most, most, begin, end, 0, 0};
    }
    blocks.place();
    for (int i = 0; i < L::kWidth; ++i) {
      int first = 0;
      for (int t = 0; t <= trees.count; ++t) {
        next[t][i] = apart ? blocks.block[t].row : first;
        first += pack.rows[t][i];
      }
    }
  }
};

/// f(source, list, group) for the groups of every source's lists from `begin` to `end`, in the order of the rows.
template <class L, class F>
COHORT_LANE void each_group(const Constraints<L>& c, const RowCounts<L>& counts, const RowPack<L>& pack, int begin,
                            int end, F f) {
  for (int s = 0; s < pack.sources; ++s) {
    for (int t = begin; t < end; ++t) {
      for (int k = counts.first_group[pack.tree[s] + t]; k >= 0; k = c.group[k].next_of_tree) {
        if ((c.group[k].lanes & pack.lanes_of(s, t)) != 0) f(s, t, c.group[k]);
      }
    }
  }
}

}  // namespace cohort::sim
