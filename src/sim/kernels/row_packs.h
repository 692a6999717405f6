/// Which problems are solved side by side in the row space. The trees of an environment that rows couple are one
/// problem, each of the others is one of its own, as MuJoCo's islands are. What a lane of a solve costs is the rows of
/// the fullest lane beside it: so problems of trees whose dofs hang together alike, several robots of one kind, leave
/// their environments' lanes and share packs with those that have about as many rows. Few environments of a block have
/// coupled trees, as a rule: those of the blocks that are stepped together share packs, and where all trees are alike,
/// a problem's trees take the pack's first slots, whichever of the environment's they are. Who is beside whom changes
/// no bit: a problem's rows and their order are its own.
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
/// Those that all problems of a solve are of: trees of a block, or trees that rows couple in some lanes of a block.
template <class L>
inline constexpr int kMostWanted = L::kWidth == 1 ? 1 : L::kWidth * kBlocksTogether;
static_assert(kBlocksTogether * 2 >= kMostRowTrees, "every tree of a block may be a source of a solve");

/// Whether some of the model's trees are alike.
template <class L>
COHORT_LANE bool trees_may_share(const ModelView& m) {
  const RowTrees trees(m, L::kWidth > 1);
  for (int t = 0; t < trees.count; ++t) {
    if (trees.kind[t] != t) return true;
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
  int part[kMostWanted<L>];
  unsigned trees[kMostWanted<L>];   ///< bits of trees: one, or those that may be coupled
  unsigned wanted[kMostWanted<L>];  ///< lanes

  COHORT_LANE void add(int of_part, unsigned of_trees, unsigned lanes) {
    if (lanes == 0) return;
    part[count] = of_part, trees[count] = of_trees, wanted[count] = lanes;
    ++count;
  }
  /// How many trees source i has.
  COHORT_LANE int slots(int i) const {
    int n = 0;
    for (unsigned left = trees[i]; left != 0; left &= left - 1) ++n;
    return n;
  }
};

/// Problems, one per lane. A place is a lane of the pack, a lane one of a block of environments.
template <class L>
struct RowPack {
  RowTrees trees;   ///< the slots: trees whose dofs stand for those of the sources' trees, which are like them
  int lists;        ///< of groups per source (RowCounts::first_group)
  int sources = 0;  ///< that problems are of
  bool moved;       ///< places differ from lanes
  int part[kMostSources<L>];
  int tree[kMostSources<L>][kMostRowTrees + 1];   ///< of a source, in a slot, or -1; behind the slots what couples
  int shift[kMostSources<L>][kMostRowTrees + 1];  ///< what its dofs are called more than those of the slot
  unsigned of[kMostSources<L>];                   ///< its lanes that are in the pack
  unsigned having[kMostSources<L>][kMostRowTrees + 1];  ///< its lanes that have a list's groups
  typename L::M at[kMostSources<L>];                    ///< their places
  unsigned places = 0;                                  ///< that are taken
  alignas(64) int lane[L::kWidth];                      ///< at a place
  alignas(64) int place[kMostSources<L>][L::kWidth];    ///< of a source's lane
  /// Rows of the places by lists of groups (RowCounts::first_group), and of all.
  int rows[kMostRowTrees + 1][L::kWidth], all[L::kWidth];

  /// Nobody yet; all_trees: the model's.
  COHORT_LANE RowPack(const RowTrees& all_trees, const RowSources<L>& wanted, int slots, bool moves)
      : trees(all_trees, wanted.coupled ? 0 : lowest_bit(wanted.trees[0]), slots),
        lists(wanted.coupled ? slots + 1 : 1),
        moved(moves) {
    for (int i = 0; i < L::kWidth; ++i) {
      lane[i] = i, all[i] = 0;
      for (int t = 0; t <= trees.count; ++t) rows[t][i] = 0;
    }
  }
  /// Source i of `wanted` joins, with nobody yet.
  COHORT_LANE int join(const RowTrees& all_trees, const RowSources<L>& wanted, int i) {
    const int s = sources++;
    part[s] = wanted.part[i], of[s] = 0;
    unsigned left = wanted.trees[i];
    for (int t = 0; t < trees.count; ++t) {
      tree[s][t] = left != 0 ? lowest_bit(left) : -1;
      shift[s][t] = left != 0 ? all_trees.dof[tree[s][t]] - trees.dof[t] : 0;
      left &= left - 1;
    }
    if (wanted.coupled) tree[s][trees.count] = all_trees.count, shift[s][trees.count] = 0;
    for (int k = 0; k < L::kWidth; ++k) place[s][k] = moved ? 0 : k;
    for (int t = 0; t <= kMostRowTrees; ++t) having[s][t] = 0;
    return s;
  }
  /// Lane `one` of source s takes a place.
  COHORT_LANE void take(const RowCounts<L>& counts, int s, int one, int at_place) {
    of[s] |= 1u << one, places |= 1u << at_place;
    lane[at_place] = one, place[s][one] = at_place;
    for (int t = 0; t < lists; ++t) {
      const int u = tree[s][t];
      if (u < 0) continue;
      if (t + 1 < lists && (counts.coupled[u] >> one & 1u) == 0) continue;  // of several lists the last couples
      having[s][t] |= 1u << one;
      all[at_place] += rows[t][at_place] = counts.in_tree[u][one];
    }
  }
  /// What dof d of source s, which one of its slots' trees has, is called in the pack.
  COHORT_LANE int slot_dof(int s, int d) const {
    for (int t = 0; t < trees.count; ++t) {
      const int own = d - shift[s][t];
      if (tree[s][t] >= 0 && own >= trees.dof[t] && own < trees.dof[t + 1]) return own;
    }
    return d;
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
      if (!wanted.coupled) return counts.in_tree[lowest_bit(wanted.trees[s])][one];
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
  /// The most slots that some of those from the first on need, as many as there are places.
  COHORT_LANE int slots(int first, const RowSources<L>& wanted) const {
    int most = 1;
    for (int i = first; i < count && i < first + L::kWidth; ++i) {
      const int n = wanted.slots(source[i]);
      most = n > most ? n : most;
    }
    return most;
  }
  /// Those from the first on, as many as there are places and sources, into a pack that has nobody yet; returns how
  /// many.
  COHORT_LANE int take(int first, const RowTrees& trees, const RowPart<L>* parts, const RowSources<L>& wanted,
                       RowPack<L>& pack) const {
    int own[kMostWanted<L>];  // what a source is called in the pack
    unsigned at[kMostSources<L>];
    for (int i = 0; i < wanted.count; ++i) own[i] = -1;
    int taken = 0;
    for (; taken < L::kWidth && first + taken < count; ++taken) {
      const int from = source[first + taken];
      if (own[from] < 0) {
        if (pack.sources == kMostSources<L>) break;
        own[from] = pack.join(trees, wanted, from);
        at[own[from]] = 0;
      }
      pack.take(parts[wanted.part[from]].counts, own[from], lane[first + taken], taken);
      at[own[from]] |= 1u << taken;
    }
    for (int s = 0; s < pack.sources; ++s) pack.at[s] = mask_of<L>(at[s]);
    return taken;
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
      if (pack.lanes_of(s, t) == 0) continue;
      for (int k = part.counts.first_group[pack.tree[s][t]]; k >= 0; k = c.group[k].next_of_tree) {
        if ((c.group[k].lanes & pack.lanes_of(s, t)) != 0) f(s, t, c, c.group[k]);
      }
    }
  }
}

}  // namespace cohort::sim
