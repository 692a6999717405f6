/// Which problems are solved side by side in the row space. The trees of an environment that rows couple are one
/// problem, each of the others is one of its own, as MuJoCo's islands are. What a lane of a solve costs is the rows of
/// the fullest lane beside it: so problems of trees whose dofs hang together alike, several robots of one kind, leave
/// their environments' lanes and share packs with those that have about as many rows. Few environments of a block have
/// coupled trees, as a rule: those of the blocks that are stepped together share packs. Who is beside whom changes no
/// bit: a problem's rows and their order are its own.
#pragma once
#include "sim/kernels/row_blocks.h"

namespace cohort::sim {

/// Blocks that may be stepped together. A single lane has nobody to share with.
inline constexpr int kBlocksTogether = 4;
template <class L>
inline constexpr int kMostBlocks = L::kWidth == 1 ? 1 : kBlocksTogether;
/// Trees or blocks that may share packs.
template <class L>
inline constexpr int kMostSources = L::kWidth == 1 ? 1 : kMostRowTrees;
static_assert(kMostRowTrees >= kBlocksTogether, "every block may be a source");

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

/// What a block has its environments solved with in the row space.
template <class L>
struct RowPart {
  Workspace<L>* w;
  const Constraints<L>* c;
  typename L::Ptr difference;  ///< (nv) a_warm - a0
  RowCounts<L> counts;
  unsigned lanes;                           ///< that are solved in the row space
  typename L::V scale;                      ///< what the tolerance is relative to
  typename L::V iterations;                 ///< of the problem of a lane that takes most
  typename L::V energy[kMostRowTrees + 1];  ///< (a_warm - a0)' M (a_warm - a0) of every tree, and of the coupled ones
  /// Lanes whose problem of a tree did not end before the iterations did; they have their forces in w.constraint.
  unsigned open[kMostRowTrees];
};

/// Where problems come from: trees of a block, or the coupled trees of blocks.
template <class L>
struct RowSources {
  bool coupled = false;
  int count = 0;
  int part[kMostSources<L>], tree[kMostSources<L>];
  unsigned wanted[kMostSources<L>];  ///< lanes

  COHORT_LANE void add(int of_part, int of_tree, unsigned lanes) {
    if (lanes == 0) return;
    part[count] = of_part, tree[count] = of_tree, wanted[count] = lanes;
    ++count;
  }
};

/// Problems, one per lane. A place is a lane of the pack, a lane one of a block of environments.
template <class L>
struct RowPack {
  RowTrees trees;                                       ///< whose rows are solved; of trees that share packs, the first
  int lists;                                            ///< of groups per source (RowCounts::first_group)
  int sources = 0;                                      ///< that problems are of
  bool moved;                                           ///< places differ from lanes
  int part[kMostSources<L>], tree[kMostSources<L>];     ///< of a source
  int shift[kMostSources<L>];                           ///< what its dofs are called more than those of the first
  unsigned of[kMostSources<L>];                         ///< its lanes that are in the pack
  unsigned having[kMostSources<L>][kMostRowTrees + 1];  ///< its lanes that have a list's groups
  typename L::M at[kMostSources<L>];                    ///< their places
  unsigned places = 0;                                  ///< that are taken
  alignas(64) int lane[L::kWidth];                      ///< at a place
  alignas(64) int place[kMostSources<L>][L::kWidth];    ///< of a source's lane
  /// Rows of the places by lists of groups (RowCounts::first_group), and of all.
  int rows[kMostRowTrees + 1][L::kWidth], all[L::kWidth];

  /// Nobody yet. all_trees: the model's.
  COHORT_LANE RowPack(const RowTrees& all_trees, const RowSources<L>& wanted, bool moves)
      : trees(wanted.coupled ? all_trees : RowTrees(all_trees, wanted.tree[0])),
        lists(wanted.coupled ? all_trees.count + 1 : 1),
        moved(moves) {
    for (int i = 0; i < L::kWidth; ++i) {
      lane[i] = i, all[i] = 0;
      for (int t = 0; t <= trees.count; ++t) rows[t][i] = 0;
    }
  }
  /// Source i of `wanted` joins, with nobody yet.
  COHORT_LANE int join(const RowTrees& all_trees, const RowSources<L>& wanted, int i) {
    const int s = sources++;
    part[s] = wanted.part[i], tree[s] = wanted.tree[i], of[s] = 0;
    shift[s] = wanted.coupled ? 0 : all_trees.dof[tree[s]] - trees.dof[0];
    for (int k = 0; k < L::kWidth; ++k) place[s][k] = moved ? 0 : k;
    for (int t = 0; t <= kMostRowTrees; ++t) having[s][t] = 0;
    return s;
  }
  /// Lane `one` of source s takes a place.
  COHORT_LANE void take(const RowCounts<L>& counts, int s, int one, int at_place) {
    of[s] |= 1u << one, places |= 1u << at_place;
    lane[at_place] = one, place[s][one] = at_place;
    for (int t = 0; t < lists; ++t) {
      if (t + 1 < lists && (counts.coupled[t] >> one & 1u) == 0) continue;  // of several lists the last couples
      having[s][t] |= 1u << one;
      all[at_place] += rows[t][at_place] = counts.in_tree[tree[s] + t][one];
    }
  }

  /// The lanes of source s that have the groups of list t and, where there are several, the dofs of tree t.
  COHORT_LANE unsigned lanes_of(int s, int t) const { return having[s][t]; }
  /// Whether a problem has the dofs of tree t.
  COHORT_LANE bool has(int t) const {
    unsigned lanes = 0;
    for (int s = 0; s < sources; ++s) lanes |= having[s][t];
    return lanes != 0;
  }

  /// The values at the pack's places; value(s): those of source s, in its block's lanes.
  template <class Of>
  COHORT_LANE typename L::V gather(Of value) const {
    using V = typename L::V;
    if (!moved) return value(0);
    V v = permute(V(value(0)), lane);
    for (int s = 1; s < sources; ++s) v = select(at[s], permute(V(value(s)), lane), v);
    return v;
  }
};

/// The problems of several sources, those with the most rows first.
template <class L>
struct RowOrder {
  int count = 0;
  short source[kMostSources<L> * L::kWidth], lane[kMostSources<L> * L::kWidth];

  COHORT_LANE RowOrder(const RowTrees& trees, const RowPart<L>* parts, const RowSources<L>& wanted) {
    const auto rows_of = [&](int s, int one) {
      const RowCounts<L>& counts = parts[wanted.part[s]].counts;
      if (!wanted.coupled) return counts.in_tree[wanted.tree[s]][one];
      int n = counts.in_tree[trees.count][one];
      for (int t = 0; t < trees.count; ++t) n += (counts.coupled[t] >> one & 1u) != 0 ? counts.in_tree[t][one] : 0;
      return n;
    };
    // Counted, then put where they belong.
    int begin[kMostRowSpaceRows + 1];
    for (int& i : begin) i = 0;
    for (int s = 0; s < wanted.count; ++s) {
      for (unsigned left = wanted.wanted[s]; left != 0; left &= left - 1) ++begin[rows_of(s, lowest_bit(left))];
    }
    for (int rows = kMostRowSpaceRows; rows >= 0; --rows) {
      const int some = begin[rows];
      begin[rows] = count;
      count += some;
    }
    for (int s = 0; s < wanted.count; ++s) {
      for (unsigned left = wanted.wanted[s]; left != 0; left &= left - 1) {
        const int one = lowest_bit(left), i = begin[rows_of(s, one)]++;
        source[i] = static_cast<short>(s), lane[i] = static_cast<short>(one);
      }
    }
  }
  /// Those from the first on, as many as there are places, into a pack that has nobody yet.
  COHORT_LANE void take(int first, const RowTrees& trees, const RowPart<L>* parts, const RowSources<L>& wanted,
                        RowPack<L>& pack) const {
    int own[kMostSources<L>];  // what a source is called in the pack
    unsigned at[kMostSources<L>];
    for (int i = 0; i < wanted.count; ++i) own[i] = -1;
    for (int i = 0; i < L::kWidth && first + i < count; ++i) {
      const int from = source[first + i];
      if (own[from] < 0) {
        own[from] = pack.join(trees, wanted, from);
        at[own[from]] = 0;
      }
      pack.take(parts[wanted.part[from]].counts, own[from], lane[first + i], i);
      at[own[from]] |= 1u << i;
    }
    for (int s = 0; s < pack.sources; ++s) pack.at[s] = mask_of<L>(at[s]);
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

/// f(source, list, constraints, group) for the groups of every source's lists from `begin` to `end`, in the order of
/// the rows.
template <class L, class F>
COHORT_LANE void each_group(const RowPart<L>* parts, const RowPack<L>& pack, int begin, int end, F f) {
  for (int s = 0; s < pack.sources; ++s) {
    const RowPart<L>& part = parts[pack.part[s]];
    const Constraints<L>& c = *part.c;
    for (int t = begin; t < end; ++t) {
      for (int k = part.counts.first_group[pack.tree[s] + t]; k >= 0; k = c.group[k].next_of_tree) {
        if ((c.group[k].lanes & pack.lanes_of(s, t)) != 0) f(s, t, c, c.group[k]);
      }
    }
  }
}

}  // namespace cohort::sim
