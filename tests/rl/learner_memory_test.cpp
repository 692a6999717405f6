// What learning takes of memory, beside the tensors that it really has.
#include "rl/learner_memory.h"

#include <string>

#include <gtest/gtest.h>

#include "core/error.h"
#include "rl/actor_critic.h"
#include "rl/point_task.h"
#include "rl/rollout.h"

namespace cohort::rl {
namespace {

LearnerSize size_of(std::int64_t n_envs, std::int64_t ranks = 1) {
  PointTask task({.n_envs = 2});
  return {.policy = {}, .ppo = {}, .runner = {}, .task = task.spec(), .n_envs = n_envs, .ranks = ranks};
}

std::string refusal(const LearnerSize& size, double available) {
  try {
    need_memory(size, available);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(LearnerMemory, HoldsARolloutAndAMinibatchOfWhatTheLayersGive) {
  const LearnerSize size = size_of(64);
  const Rollout rollout(size.runner.num_steps_per_env, size.n_envs, 2, 2, at::kCPU);
  double bytes = 0;
  for (const at::Tensor& x : {rollout.observations, rollout.actions, rollout.means, rollout.log_probs, rollout.values,
                              rollout.rewards, rollout.dones, rollout.advantages, rollout.returns})
    bytes += static_cast<double>(x.nbytes());
  const double layers = 4.0 * 2 * 3 * 256, rows = 64.0 * size.runner.num_steps_per_env / size.ppo.num_mini_batches;
  const double counted = learner_memory(size).per_environment * 64;
  EXPECT_GT(counted, bytes + layers * rows);
  EXPECT_LT(counted, 3 * (bytes + layers * rows));
}

TEST(LearnerMemory, TooManyEnvironmentsAreRefusedWithANumberThatFits) {
  const double available = 256 << 20;
  for (const std::int64_t ranks : {1, 3}) {
    const std::string message = refusal(size_of(9'000'000, ranks), available);
    const std::size_t at = message.find("enough for n_envs=");
    ASSERT_NE(at, std::string::npos) << message;
    const std::int64_t fits = std::stoll(message.substr(at + 18));
    EXPECT_EQ(fits % ranks, 0);
    EXPECT_EQ(refusal(size_of(fits, ranks), available), "");
    EXPECT_NE(refusal(size_of(fits + fits / 10, ranks), available), "") << "not far below";
  }
}

TEST(LearnerMemory, AnAverageOfTheWeightsIsCounted) {
  LearnerSize size = size_of(32);
  const double without = learner_memory(size).fixed;
  size.runner.ema.enabled = true;
  const ActorCritic networks(size.policy, size.task, 1);
  double weights = 0;
  for (const at::Tensor& parameter : networks.parameters()) weights += static_cast<double>(parameter.nbytes());
  EXPECT_NEAR(learner_memory(size).fixed - without, 2 * weights, 0.01 * weights) << "itself, and in a checkpoint";
}

TEST(LearnerMemory, NetworksThatDoNotFitAreNamed) {
  LearnerSize size = size_of(32);
  size.policy.actor_hidden_dims = {100'000'000, 100'000'000};
  EXPECT_NE(refusal(size, 1e12).find("policy.actor_hidden_dims"), std::string::npos) << refusal(size, 1e12);
}

}  // namespace
}  // namespace cohort::rl
