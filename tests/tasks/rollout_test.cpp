#include "tasks/rollout.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tasks/line_task.h"

namespace cohort::testing {
namespace {

using tasks::consecutive_seeds;
using tasks::EpisodeOutcome;
using tasks::run_episodes;

bool same(const EpisodeOutcome& a, const EpisodeOutcome& b) {
  return a.seed == b.seed && a.steps == b.steps && a.success == b.success && a.terminated == b.terminated &&
         a.failed == b.failed && a.total_reward == b.total_reward && a.max_reward == b.max_reward && a.fault == b.fault;
}

TEST(Rollout, AnEpisodeIsAFunctionOfItsSeedForAnyNumberOfEnvironments) {
  const auto seeds = consecutive_seeds(100, 25);
  LineTask one(1);
  LineExpert expert;
  const auto alone = run_episodes(one, expert, seeds, {.noise = 0.3, .instruction = ""});
  ASSERT_EQ(alone.size(), seeds.size());
  for (const int n : {2, 7, 25, 40}) {
    LineTask many(n);
    LineExpert other;
    const auto together = run_episodes(many, other, seeds, {.noise = 0.3, .instruction = ""});
    for (std::size_t i = 0; i < seeds.size(); ++i) EXPECT_TRUE(same(alone[i], together[i])) << n << ", " << i;
  }
}

TEST(Rollout, OutcomesFollowTheClosedForm) {
  LineTask task(3);
  LineExpert expert;
  const auto outcomes = run_episodes(task, expert, consecutive_seeds(0, 14));
  for (const EpisodeOutcome& o : outcomes) {
    float x = 2 * RandomStream(5, RandomPurpose::kTest, o.seed, 0).uniform(0) - 1;
    const bool windy = o.seed % 7 == 3;
    std::int64_t steps = 0;
    double sum = 0, best = -1e9;
    do {
      x += 0.1f * std::clamp(-5 * x, -1.0f, 1.0f) + (windy ? (x < 0 ? -0.2f : 0.2f) : 0.0f);
      sum += 1 - std::abs(x);
      best = std::max<double>(best, 1 - std::abs(x));
      ++steps;
    } while (std::abs(x) >= 0.05f && steps < 40);
    EXPECT_EQ(o.steps, steps) << o.seed;
    EXPECT_EQ(o.success, std::abs(x) < 0.05f) << o.seed;
    EXPECT_EQ(o.terminated, o.success);
    EXPECT_NEAR(o.total_reward, sum, 1e-4);
    EXPECT_NEAR(o.max_reward, best, 1e-6);
    EXPECT_FALSE(o.failed);
  }
}

TEST(Rollout, AnActionThatIsNotFiniteEndsItsEpisodeAndNoOther) {
  LineTask task(4);
  LineExpert sound, sick(2);
  const auto seeds = consecutive_seeds(20, 12);
  const auto expected = run_episodes(task, sound, seeds), outcomes = run_episodes(task, sick, seeds);
  int faults = 0;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (seeds[i] % 2 == 0 || expected[i].steps <= 2) {
      EXPECT_TRUE(same(outcomes[i], expected[i])) << seeds[i];
      continue;
    }
    ++faults;
    EXPECT_TRUE(outcomes[i].failed);
    EXPECT_FALSE(outcomes[i].success);
    EXPECT_EQ(outcomes[i].steps, 3);
    EXPECT_EQ(outcomes[i].fault, "step 3: the action is not finite");
  }
  EXPECT_GT(faults, 2);
}

TEST(Rollout, ObserversSeeWhatWasChosenAndNotTheNoise) {
  struct Watch final : tasks::RolloutObserver {
    std::map<std::size_t, std::vector<float>> places;
    void acting(tasks::Task& task, std::span<const tasks::RunningEpisode> running, ArrayView actions) override {
      const auto x = task.observation(0).span<float>(), a = actions.span<float>();
      for (const auto& r : running) {
        const auto e = static_cast<std::size_t>(r.env);
        EXPECT_EQ(a[e], std::clamp(-5 * x[e], -1.0f, 1.0f));
        places[r.episode].push_back(x[e]);
      }
    }
  };
  LineTask task(3);
  LineExpert expert;
  Watch watch, calm;
  run_episodes(task, expert, consecutive_seeds(0, 3), {.noise = 0.5, .instruction = ""}, &watch);
  run_episodes(task, expert, consecutive_seeds(0, 3), {}, &calm);
  EXPECT_EQ(watch.places.at(1).front(), calm.places.at(1).front());
  EXPECT_NE(watch.places.at(1).at(1), calm.places.at(1).at(1)) << "what is executed is disturbed";
}

TEST(Rollout, WhatCannotBeRunIsRefused) {
  LineTask task(2);
  LineExpert expert;
  EXPECT_THROW(run_episodes(task, expert, {}), Error);
  EXPECT_THROW(run_episodes(task, expert, consecutive_seeds(0, 1), {.max_steps = 41, .instruction = ""}), Error);
  EXPECT_THROW(run_episodes(task, expert, consecutive_seeds(0, 1), {.noise = -1, .instruction = ""}), Error);
  EXPECT_THROW(consecutive_seeds(0, 0), Error);
  LineTask endless(2, 0);
  EXPECT_THROW(run_episodes(endless, expert, consecutive_seeds(0, 1)), Error);
}

}  // namespace
}  // namespace cohort::testing
