#include "team_comparison.h"

#include <cstring>
#include <limits>
#include <vector>

#include "core/format.h"
#include "host_team.h"
#include "sim/kernels/solve/team_space.h"

namespace cohort::sim::test {

namespace {

/// What a solver has found.
struct Solution {
  std::vector<float> qacc, constraint, pool;
  float iterations = 0;
};

/// A space of its own for a policy of one float, with NaN in it and the block's input.
template <class L>
class Own {
 public:
  Own(const ModelView& m, const BlockSpace<ScalarLane>& b) {
    const TeamRows n = team_rows(b.c);
    values_.assign(static_cast<std::size_t>(lay_out_team<L>(m, n, nullptr, space)),
                   std::numeric_limits<float>::quiet_NaN());
    lay_out_team<L>(m, n, values_.data(), space);
    cols_.assign(static_cast<std::size_t>(triangle(m.nv, 0)), -1);
    start_.assign(static_cast<std::size_t>(m.nv) + 1, -1);
    bits_.assign(2 * static_cast<std::size_t>(m.nv) + 1, ~0ull);
    groups_.assign(b.c.group, b.c.group + b.c.count);
    space.c.group = groups_.data();
    space.s.cols = cols_.data(), space.s.start = start_.data(), space.s.bits = bits_.data();
    take_environment<L, ScalarLane>(m, b.w, b.c, b.s, space);
    space.w.weight_ratio = b.w.weight_ratio;
  }

  Solution solve(const ModelView& m) {
    Solution found;
    solve_in_accelerations<L>(m, space.w, space.c, space.s, true, found.iterations);
    found.qacc.assign(space.w.qacc, space.w.qacc + m.nv);
    found.constraint.assign(space.w.constraint, space.w.constraint + m.nv);
    found.pool.assign(space.c.pool, space.c.pool + space.c.pool_used);
    return found;
  }

  TeamSpace<L> space{};

 private:
  std::vector<float> values_;
  std::vector<int> cols_, start_;
  std::vector<unsigned long long> bits_;
  std::vector<Group> groups_;
};

std::string difference(const char* what, const std::vector<float>& ours, const std::vector<float>& truth) {
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::memcmp(&ours[i], &truth[i], sizeof(float)) != 0) {
      return format("{}[{}] is {} and not {}", what, i, ours[i], truth[i]);
    }
  }
  return "";
}

template <int kThreads>
std::string compare(const ModelView& m, const BlockSpace<ScalarLane>& b, const Solution& truth) {
  const Solution ours = Own<HostTeamLane<kThreads>>(m, b).solve(m);
  std::string why;
  if (ours.iterations != truth.iterations) why = format("iterations {} and not {}", ours.iterations, truth.iterations);
  if (why.empty()) why = difference("qacc", ours.qacc, truth.qacc);
  if (why.empty()) why = difference("constraint", ours.constraint, truth.constraint);
  if (why.empty()) why = difference("pool", ours.pool, truth.pool);
  return why.empty() ? "" : format("a team of {}: {}", kThreads, why);
}

}  // namespace

std::string team_difference(const ModelView& m, const BlockSpace<ScalarLane>& b, int& solved) {
  if (!b.c.constrained || m.nv > kMostTeamDofs) return "";
  ++solved;
  const Solution truth = Own<ScalarLane>(m, b).solve(m);
  std::string why = compare<8>(m, b, truth);
  if (why.empty()) why = compare<16>(m, b, truth);
  if (why.empty()) why = compare<32>(m, b, truth);
  return why;
}

}  // namespace cohort::sim::test
