// The planner on whole episodes: seconds each.
#include <gtest/gtest.h>

#include "tasks/actor.h"
#include "tasks/push_t/push_t_expert.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"

namespace cohort::tasks {
namespace {

constexpr std::int64_t kEpisodes = 6;
// An expert that fails more often is none: demonstrations come from it.
constexpr double kLeastSuccess = 4.0 / 6;

TEST(PushTSolved, ThePlannerSolvesGymPushtsResetsWhereRandomActionsDoNot) {
  const auto task = make_task("push-t", {.n_envs = 6, .threads = 2});
  const auto expert = task->make_expert(0), random = make_random_actor(1);
  const auto seeds = consecutive_seeds(500, kEpisodes);
  const auto by_expert = run_episodes(*task, *expert, seeds), by_random = run_episodes(*task, *random, seeds);
  int solved = 0;
  double gain = 0;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    solved += by_expert[i].success ? 1 : 0;
    gain += (by_expert[i].max_reward - by_random[i].max_reward) / static_cast<double>(kEpisodes);
  }
  EXPECT_GE(solved, kLeastSuccess * static_cast<double>(kEpisodes) - 1e-9);
  EXPECT_GT(gain, 0.3);
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
