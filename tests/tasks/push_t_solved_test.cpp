// The planner on whole episodes: seconds each.
#include <cstdio>

#include <gtest/gtest.h>

#include "tasks/push_t_rollout.h"

namespace cohort::tasks {
namespace {

constexpr std::int64_t kEpisodes = 6;
// An expert that fails more often is none: demonstrations come from it.
constexpr double kLeastSuccess = 4.0 / 6;

TEST(PushTSolved, ThePlannerSolvesGymPushtsResetsWhereRandomActionsDoNot) {
  const PushTScore expert = score_push_t(
      500, kEpisodes, [](std::uint32_t) { return make_push_t_expert(); }, 2);
  const PushTScore random = score_push_t(
      500, kEpisodes, [](std::uint32_t seed) { return make_push_t_random(1, seed); }, 2);
  EXPECT_GE(expert.success_rate, kLeastSuccess - 1e-9);
  EXPECT_GT(expert.mean_largest_reward, random.mean_largest_reward + 0.3);
  for (const PushTEpisode& episode : expert.episodes)
    if (!episode.success)
      std::printf("seed %u: largest reward %.3f in %lld steps\n", episode.seed, episode.largest_reward,
                  static_cast<long long>(episode.steps));
}

TEST(PushTSolved, TheSameEpisodeGetsTheSameActions) {
  PushT a, b;
  a.reset(77);
  b.reset(77);
  PushTExpert first, second;
  second.act(a.situation());
  second.restart();
  for (int t = 0; t < 60; ++t) {
    const PushTAction action = first.act(a.situation());
    ASSERT_EQ(action, second.act(b.situation())) << t;
    a.step(action);
    b.step(action);
  }
}

}  // namespace
}  // namespace cohort::tasks
