/// Which environments are solved side by side in the row space. What a lane of a solve costs is the rows of the fullest
/// lane beside it, and of several blocks of environments those with like numbers of rows can share lanes: a pack. An
/// environment whose constraints couple none of its trees is one problem per tree, as MuJoCo's islands are; another is
/// one as a whole. Who shares lanes with whom changes no bit: an environment's rows and their order are its own.
#pragma once
#include "sim/kernels/row_records.h"

namespace cohort::sim {

/// Blocks of environments that are stepped together, and so may share packs.
template <class L>
inline constexpr int kMostSources = L::kWidth == 1 ? 1 : 4;

/// What is solved: the rows of the trees [first, first + trees.count), and those that couple them.
struct RowProblem {
  RowTrees trees;
  int first;

  /// The lists of groups (RowCounts::first_group) that have its rows: the trees', and where it is the whole
  /// environment, those that couple trees.
  COHORT_LANE RowProblem(const RowTrees& all, int tree) : trees(tree < all.count ? RowTrees(all, tree) : all) {
    first = tree < all.count ? tree : 0;
  }
};

/// One problem of an environment each.
template <class L>
struct RowPack {
  int sources;                                  ///< blocks that environments may be of
  bool same;                                    ///< the pack's lanes are those of the one source
  unsigned lanes;                               ///< bits of the lanes that are taken
  unsigned of[kMostSources<L>];                 ///< bits of the lanes of each source that are in the pack
  short source[L::kWidth], lane_of[L::kWidth];  ///< whose environment a lane has
  /// For pick(): where a lane's environment is among the sources 0 and 1, or 2 and 3; where in the pack a source's
  /// environment is.
  alignas(64) int from[L::kWidth];
  alignas(64) int to[kMostSources<L>][L::kWidth];
  typename L::M upper;  ///< lanes whose environment is of source 2 or 3
  /// Rows of the lanes by lists of groups, and of all.
  int rows[kMostRowTrees + 1][L::kWidth], all[L::kWidth];

  /// The most that a lane of `wanted` has of n[lane].
  COHORT_LANE static int most(const int* n, unsigned wanted) {
    int most = 0;
    for (unsigned left = wanted; left != 0; left &= left - 1) {
      const int lane = lowest_bit(left);
      if (n[lane] > most) most = n[lane];
    }
    return most;
  }
  /// Takes the rows of lane `lane` of a source for the pack's lane i.
  COHORT_LANE void take(int i, const SolverPlan<L>& plan, int lane, const RowProblem& problem) {
    const int lists = problem.trees.count + 1;
    all[i] = 0;
    for (int t = 0; t < lists; ++t) {
      // A tree that is a problem of its own has no rows that couple it.
      rows[t][i] = lists == 2 && t == 1 ? 0 : plan.rows.in_tree[problem.first + t][lane];
      all[i] += rows[t][i];
    }
  }
};

/// Where a problem is: lane and source.
struct RowPlace {
  short source, lane;
};

/// The problems of `wanted` lanes of every source, those with the most rows first.
template <class L>
struct RowOrder {
  int count = 0;
  RowPlace place[kMostSources<L> * L::kWidth];

  COHORT_LANE RowOrder(const RowProblem& problem, const SolverPlan<L>* plans, const unsigned* wanted, int sources) {
    // Counted, then put where they belong.
    const bool whole = problem.trees.count > 1;
    int begin[kMostRowSpaceRows + 2];
    for (int& n : begin) n = 0;
    const auto rows_of = [&](int s, int lane) {
      return whole ? plans[s].rows.of[lane] : plans[s].rows.in_tree[problem.first][lane];
    };
    for (int s = 0; s < sources; ++s) {
      for (unsigned left = wanted[s]; left != 0; left &= left - 1) ++begin[rows_of(s, lowest_bit(left))];
    }
    for (int rows = kMostRowSpaceRows; rows >= 0; --rows) {
      const int n = begin[rows];
      begin[rows] = count;
      count += n;
    }
    for (int s = 0; s < sources; ++s) {
      for (unsigned left = wanted[s]; left != 0; left &= left - 1) {
        const int lane = lowest_bit(left);
        place[begin[rows_of(s, lane)]++] = {static_cast<short>(s), static_cast<short>(lane)};
      }
    }
  }

  /// The problems from `begin` on, as many as there are lanes.
  COHORT_LANE RowPack<L> pack(int begin, const RowProblem& problem, const SolverPlan<L>* plans, int sources) const {
    RowPack<L> p;
    const int end = begin + L::kWidth < count ? begin + L::kWidth : count;
    p.sources = sources, p.same = false;
    p.lanes = (1u << (end - begin)) - 1;
    alignas(64) float is_upper[L::kWidth];
    for (int s = 0; s < kMostSources<L>; ++s) {
      p.of[s] = 0;
      for (int lane = 0; lane < L::kWidth; ++lane) p.to[s][lane] = 0;
    }
    for (int i = 0; i < L::kWidth; ++i) {
      // Lanes that nobody needs compute what the first one does, without rows.
      const bool taken = begin + i < end;
      const RowPlace& at = place[taken ? begin + i : begin];
      p.source[i] = at.source, p.lane_of[i] = at.lane;
      p.from[i] = at.source % 2 * L::kWidth + at.lane;
      is_upper[i] = at.source < 2 ? 0.0f : 1.0f;
      if (!taken) continue;
      p.of[at.source] |= 1u << at.lane;
      p.to[at.source][at.lane] = i;
      p.take(i, plans[at.source], at.lane, problem);
    }
    p.upper = load(is_upper, static_cast<typename L::V*>(nullptr)) > typename L::V(0.0f);
    return p;
  }
};

/// `wanted` lanes of a single source, where they are.
template <class L>
COHORT_LANE RowPack<L> same_lanes(const RowProblem& problem, const SolverPlan<L>& plan, unsigned wanted) {
  RowPack<L> p;
  p.sources = 1, p.same = true;
  p.lanes = p.of[0] = wanted;
  for (int i = 0; i < L::kWidth; ++i) {
    p.source[i] = 0, p.lane_of[i] = static_cast<short>(i);
    p.from[i] = p.to[0][i] = i;
    p.take(i, plan, i, problem);
  }
  p.upper = typename L::V(0.0f) != typename L::V(0.0f);
  return p;
}

/// The values of the pack's lanes; of(s): those of source s.
template <class L, class Of>
COHORT_LANE typename L::V into_pack(const RowPack<L>& p, Of of) {
  using V = typename L::V;
  const V lower = pick(V(of(0)), V(of(p.sources > 1 ? 1 : 0)), p.from);
  if (p.sources <= 2) return lower;
  return select(p.upper, pick(V(of(2)), V(of(p.sources > 3 ? 3 : 2)), p.from), lower);
}

/// A mask of the lanes whose bits are set.
template <class L>
COHORT_LANE typename L::M mask_of(unsigned lanes) {
  alignas(64) float is_set[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) is_set[i] = (lanes >> i & 1u) != 0 ? 1.0f : 0.0f;
  return load(is_set, static_cast<typename L::V*>(nullptr)) > typename L::V(0.0f);
}

/// Where the lanes' rows begin.
template <class L>
struct RowsOfLanes {
  bool apart;  ///< every tree has a block of its own
  int first[kMostRowTrees + 1][L::kWidth];

  /// A lane's rows lie one after the other where all blocks together would be more than `capacity`: then there is one
  /// block. Which of both it is changes no bit: the rows keep their order, and what is left out are zeros.
  COHORT_LANE RowsOfLanes(const RowTrees& trees, const RowPack<L>& pack, int capacity, RowBlocks& blocks) {
    const int begin = trees.dof[0], end = trees.dof[trees.count];
    blocks.rows = 0;
    for (int t = 0; t <= trees.count; ++t) {
      const bool coupling = t == trees.count;
      blocks.across = blocks.rows;
      blocks.rows += RowPack<L>::most(pack.rows[t], pack.lanes);
      blocks.block[t] = {
          blocks.across, blocks.rows, coupling ? begin : trees.dof[t], coupling ? end : trees.dof[t + 1], 0, 0};
    }
    blocks.count = trees.count;
    apart = trees.count > 1 && blocks.rows <= capacity;
    if (!apart) {
      const int most = RowPack<L>::most(pack.all, pack.lanes);
      blocks.count = 1, blocks.across = blocks.rows = most;
      blocks.block[0] = {0, most, begin, end, 0, 0};
      blocks.block[1] = {most, most, begin, end, 0, 0};
    }
    blocks.place();
    for (int i = 0; i < L::kWidth; ++i) {
      int next = 0;
      for (int t = 0; t <= trees.count && (pack.lanes >> i & 1u) != 0; ++t) {
        first[t][i] = apart ? blocks.block[t].row : next;
        next += pack.rows[t][i];
      }
    }
  }
};

}  // namespace cohort::sim
