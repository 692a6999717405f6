/// A team: the threads that compute one environment together. Kernels say what may be done side by side by the
/// functions below; with a team of one, which SIMD lanes and a thread with an environment of its own are, each is the
/// plain loop.
///
/// What is computed outside of these functions, every thread of a team computes alike. Two rules keep that so: memory
/// is written inside of them only, and what the threads have read outside is not written by the very next each() or
/// one(), which a faster thread may have begun; meet() in between lets it.
///
/// The bits are those of a team of one. Entries, rows and dofs are computed by one thread each, in the order in which
/// the loop computes them; sums go in the loop's order (in_order), or in parts that are the loop's (parts).
#pragma once
#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

struct TeamOfOne {
  static constexpr int kThreads = 1;
};
/// A policy's team: specialized by those whose blocks several threads compute (cuda/team.h). Beside kThreads such a
/// team has the functions below as static members.
template <class L>
struct TeamOf {
  using Type = TeamOfOne;
};
template <class L>
using Team = typename TeamOf<L>::Type;
template <class L>
inline constexpr bool kIsTeam = Team<L>::kThreads > 1;

/// f(i) for every i < n, each by one thread, in any order; then all see what was written.
template <class L, class F>
COHORT_LANE void each(int n, const F& f) {
  if constexpr (kIsTeam<L>) {
    Team<L>::each(n, f);
  } else {
    for (int i = 0; i < n; ++i) f(i);
  }
}

/// f() by one thread; then all see what was written.
template <class L, class F>
COHORT_LANE void one(const F& f) {
  if constexpr (kIsTeam<L>) {
    Team<L>::each(1, [&](int) { f(); });
  } else {
    f();
  }
}

/// No thread goes on before all are there.
template <class L>
COHORT_LANE void meet() {
  if constexpr (kIsTeam<L>) Team<L>::each(0, [](int) {});
}

/// terms(i, values) for every i < n, each by one thread, then add(values) in the order of i by all of them. Values:
/// kTerms of them.
template <class L, int kTerms, class Terms, class Add>
COHORT_LANE void in_order(int n, const Terms& terms, const Add& add) {
  using V = typename L::V;
  if constexpr (kIsTeam<L>) {
    Team<L>::template in_order<kTerms, V>(n, terms, add);
  } else {
    for (int i = 0; i < n; ++i) {
      V values[kTerms];
      terms(i, values);
      add(values);
    }
  }
}

/// sums[p] := part(p) for the kParts parts of a sum, each by one thread, and known to all.
template <class L, int kParts, class Part>
COHORT_LANE void parts(typename L::V* sums, const Part& part) {
  if constexpr (kIsTeam<L>) {
    Team<L>::template parts<kParts>(sums, part);
  } else {
    for (int p = 0; p < kParts; ++p) sums[p] = part(p);
  }
}

/// Row and column of entry k of a lower triangle that is stored row by row; column <= row. k < 2^22.
struct TrianglePlace {
  int row, column;
  COHORT_LANE explicit TrianglePlace(int k) {
    // A root in single precision may be off by one row at its ends.
    row = static_cast<int>((sqrt(8.0f * static_cast<float>(k) + 1.0f) - 1.0f) * 0.5f);
    if (row * (row + 1) / 2 > k) --row;
    if ((row + 1) * (row + 2) / 2 <= k) ++row;
    column = k - row * (row + 1) / 2;
  }
};

}  // namespace cohort::sim
