// The experts of the suite in 100 seeds on both engines.
#include <cstdio>

#include <gtest/gtest.h>

#include "tasks/suite_rollout.h"

namespace cohort::tasks {
namespace {

struct Case {
  const char* task;
  const char* engine;
  int least;  // successes in 100
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.task << " on " << c.engine;
}

class SuiteExperts : public testing::TestWithParam<Case> {};

TEST_P(SuiteExperts, SucceedInAsManySeedsAsPromised) {
  const Case& c = GetParam();
  const auto task = make_task(c.task, {.n_envs = 100, .threads = 2, .engine = c.engine});
  int successes = 0, longest = 0;
  double steps = 0, reward = 0;
  std::string failed;
  const auto seeds = seeds_from(1000, 100);
  const std::vector<SuiteEpisode> episodes = roll_out(*task, seeds);
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    const SuiteEpisode& episode = episodes[e];
    successes += episode.success;
    reward += episode.reward / 100;
    if (episode.success) longest = std::max(longest, episode.steps), steps += episode.steps;
    if (!episode.success) failed += " " + std::to_string(seeds[e]);
  }
  std::printf("%s, %s: %d of 100, %.1f steps on average, %d at most, reward %.2f, failed:%s\n", c.task, c.engine,
              successes, steps / std::max(1, successes), longest, reward, failed.c_str());
  EXPECT_GE(successes, c.least);
}

INSTANTIATE_TEST_SUITE_P(All, SuiteExperts,
                         testing::Values(Case{"pick-and-place", "batched", 95}, Case{"pick-and-place", "mujoco", 95}));

}  // namespace
}  // namespace cohort::tasks
