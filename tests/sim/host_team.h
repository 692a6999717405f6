/// A team whose threads are this one, by turns, in another order at every step: what depends on the order of a team's
/// threads shows.
#pragma once
#include <numeric>
#include <vector>

#include "sim/kernels/lane/team.h"

namespace cohort::sim::test {

/// The order in which the threads of a team come by turns; drawn anew for each call.
inline std::vector<int> shuffled(int n) {
  static unsigned state = 1;
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    state = state * 1664525u + 1013904223u;
    std::swap(order[i - 1], order[(state >> 8) % i]);
  }
  return order;
}

template <int kTeamThreads>
struct HostTeam {
  static constexpr int kThreads = kTeamThreads;

  template <class F>
  static void each(int n, const F& f) {
    for (const int i : shuffled(n)) f(i);
  }
  template <int kTerms, class V, class Terms, class Add>
  static void in_order(int n, const Terms& terms, const Add& add) {
    for (int first = 0; first < n; first += kThreads) {
      const int count = n - first < kThreads ? n - first : kThreads;
      V values[kThreads][kTerms];
      for (const int r : shuffled(count)) terms(first + r, values[r]);
      for (int r = 0; r < count; ++r) add(values[r]);
    }
  }
  template <int kParts, class V, class Part>
  static void parts(V* sums, const Part& part) {
    for (const int p : shuffled(kParts)) sums[p] = part(p);
  }
};

template <int kTeamThreads>
struct HostTeamLane {
  using V = float;
  using M = bool;
  using Ptr = float*;
  static constexpr int kWidth = 1;
};

}  // namespace cohort::sim::test

namespace cohort::sim {

template <int kTeamThreads>
struct TeamOf<test::HostTeamLane<kTeamThreads>> {
  using Type = test::HostTeam<kTeamThreads>;
};

}  // namespace cohort::sim
