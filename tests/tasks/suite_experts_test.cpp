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

constexpr Case kCases[] = {
    {"reach", "batched", 95},
    {"reach", "mujoco", 95},
    {"push", "batched", 95},
    {"push", "mujoco", 95},
    {"pick-and-place", "batched", 95},
    {"pick-and-place", "mujoco", 95},
    {"stack", "batched", 95},
    {"stack", "mujoco", 95},
    {"open-drawer", "batched", 95},
    {"open-drawer", "mujoco", 95},
    {"peg-in-hole", "batched", 80},
    {"peg-in-hole", "mujoco", 80},
    {"cartpole-balance", "batched", 95},
    {"cartpole-balance", "mujoco", 95},
    {"cartpole-swingup", "batched", 95},
    {"cartpole-swingup", "mujoco", 95},
};
INSTANTIATE_TEST_SUITE_P(All, SuiteExperts, testing::ValuesIn(kCases), [](const auto& of) {
  std::string name = std::string(of.param.task) + "_" + of.param.engine;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace cohort::tasks
