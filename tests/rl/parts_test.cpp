// The parts of PPO, each against its formula.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "rl/actor_critic.h"
#include "rl/gaussian.h"
#include "rl/point_task.h"
#include "rl/ppo.h"
#include "rl/presets.h"
#include "rl/rollout.h"
#include "rl/running_moments.h"
#include "rl/settings.h"

namespace cohort::rl {
namespace {

TEST(Gae, IsTheSumOfDiscountedDifferences) {
  Rollout rollout(7, 3, 1, 1);
  torch::manual_seed(1);
  rollout.values = torch::randn({7, 3}), rollout.rewards = torch::randn({7, 3});
  rollout.dones = (torch::rand({7, 3}) < 0.3).to(at::kFloat);
  const at::Tensor last = torch::randn({3});
  const double gamma = 0.9, lam = 0.8;
  rollout.compute_returns(last, gamma, lam);
  const auto entry = [](const at::Tensor& x, int t, int e) { return x[t][e].item<double>(); };
  double sum = 0, squares = 0;
  std::vector<double> advantages;
  for (int t = 0; t < 7; ++t)
    for (int e = 0; e < 3; ++e) {
      // Equation 16 of the paper, term by term, until the episode ends.
      double advantage = 0, factor = 1;
      for (int k = t; k < 7; ++k) {
        const bool over = entry(rollout.dones, k, e) != 0;
        const double next = over ? 0 : k + 1 < 7 ? entry(rollout.values, k + 1, e) : last[e].item<double>();
        advantage += factor * (entry(rollout.rewards, k, e) + gamma * next - entry(rollout.values, k, e));
        factor *= gamma * lam;
        if (over) break;
      }
      EXPECT_NEAR(entry(rollout.returns, t, e), advantage + entry(rollout.values, t, e), 1e-5);
      advantages.push_back(advantage);
      sum += advantage;
    }
  const double mean = sum / 21;
  for (const double a : advantages) squares += (a - mean) * (a - mean);
  for (int i = 0; i < 21; ++i)
    EXPECT_NEAR(entry(rollout.advantages, i / 3, i % 3),
                (advantages[static_cast<std::size_t>(i)] - mean) / std::sqrt(squares / 20), 1e-4);
}

TEST(Ppo, TheSurrogateStopsWhereTheRatioLeavesItsRange) {
  const at::Tensor old = at::zeros({4}), advantages = torch::tensor({1.0f, 1.0f, -1.0f, -1.0f});
  at::Tensor now = torch::tensor({0.5f, -0.5f, 0.5f, -0.5f}).requires_grad_();
  surrogate_loss(now, old, advantages, 0.2).backward();
  // A gain beyond 1.2 counts no more, nor does one below 0.8 where the advantage is negative; losses always count.
  const at::Tensor gradient = now.grad() * 4;
  EXPECT_EQ(gradient[0].item<float>(), 0.0f);
  EXPECT_NEAR(gradient[1].item<float>(), -std::exp(-0.5f), 1e-6);
  EXPECT_NEAR(gradient[2].item<float>(), std::exp(0.5f), 1e-6);
  EXPECT_EQ(gradient[3].item<float>(), 0.0f);
}

TEST(Ppo, ValuesAreClippedOnRequestOnly) {
  const at::Tensor values = torch::tensor({3.0f}), old = torch::tensor({1.0f}), returns = torch::tensor({4.0f});
  EXPECT_FLOAT_EQ(value_loss(values, old, returns, false, 0.2).item<float>(), 1.0f);
  EXPECT_FLOAT_EQ(value_loss(values, old, returns, true, 0.2).item<float>(), 2.8f * 2.8f);
}

TEST(Gaussian, ProbabilityEntropyAndDivergenceFollowTheirIntegrals) {
  const double mean = 0.3, deviation = 0.7, other_mean = -0.2, other_deviation = 1.1;
  const auto one = [](double x) { return torch::tensor({static_cast<float>(x)}); };
  const auto log_density = [](double x, double m, double s) {
    return -0.5 * (x - m) * (x - m) / (s * s) - std::log(s * std::sqrt(2 * std::numbers::pi));
  };
  double entropy = 0, divergence = 0;
  const double width = 1e-3;
  for (double x = -10; x < 10; x += width) {
    const double p = std::exp(log_density(x, mean, deviation));
    entropy -= p * log_density(x, mean, deviation) * width;
    divergence += p * (log_density(x, mean, deviation) - log_density(x, other_mean, other_deviation)) * width;
  }
  const at::Tensor log_std = one(std::log(deviation)), other_log_std = one(std::log(other_deviation));
  EXPECT_NEAR(gaussian_log_prob(one(mean), log_std, one(1.5)).item<float>(), log_density(1.5, mean, deviation), 1e-5);
  EXPECT_NEAR(gaussian_entropy(log_std).item<float>(), entropy, 1e-5);
  EXPECT_NEAR(gaussian_kl(one(mean), log_std, one(other_mean), other_log_std).item<float>(), divergence, 1e-5);
  EXPECT_EQ(gaussian_kl(one(mean), log_std, one(mean), log_std).item<float>(), 0.0f);
}

TEST(RunningMoments, MergedInPartsAreThoseOfAll) {
  torch::manual_seed(2);
  const at::Tensor all = torch::randn({100, 3}) * 5 + 1000;
  RunningMoments moments(3);
  EXPECT_TRUE(at::equal(moments.normalize(all), all)) << "before anything was seen";
  moments.merge(all.narrow(0, 0, 1));
  moments.merge(all.narrow(0, 1, 60).reshape({6, 10, 3}));
  moments.merge(all.narrow(0, 61, 39));
  const at::Tensor exact = all.to(at::kDouble);
  EXPECT_EQ(moments.count().item<double>(), 100);
  EXPECT_TRUE(at::allclose(moments.mean(), exact.mean(0), 1e-12, 1e-9));
  EXPECT_TRUE(at::allclose(moments.m2(), (exact - exact.mean(0)).square().sum(0), 1e-12, 1e-9));
  const at::Tensor expected = (exact - exact.mean(0)) / (exact.std(0, false) + 0.01);
  EXPECT_LT((moments.normalize(all).to(at::kDouble) - expected).abs().max().item<double>(), 1e-4);
}

TEST(ShuffledOrder, IsAPermutationOfItsOwnForEverySeedAndPass) {
  const at::Tensor order = shuffled_order(1000, 1, 0);
  EXPECT_TRUE(at::equal(std::get<0>(order.sort()), at::arange(1000)));
  EXPECT_TRUE(at::equal(order, shuffled_order(1000, 1, 0)));
  EXPECT_FALSE(at::equal(order, shuffled_order(1000, 1, 1)));
  EXPECT_FALSE(at::equal(order, shuffled_order(1000, 2, 0)));
  EXPECT_LT((order == at::arange(1000)).sum().item<std::int64_t>(), 10) << "nearly everything moves";
}

TEST(ActorCritic, ActionsOfOneReachTheTasksBounds) {
  const PointTask task;
  PolicySettings settings;
  settings.init_noise_std = 0.5;
  ActorCritic networks(settings, task.spec(), 3);
  EXPECT_TRUE(at::allclose(networks.to_task(torch::tensor({{-1.0f, -1.0f}, {1.0f, 1.0f}})),
                           torch::tensor({{-2.0f, 0.0f}, {2.0f, 1.0f}})));
  EXPECT_TRUE(at::allclose(networks.log_std().exp(), torch::tensor({0.5f, 0.5f})));
  ActorCritic same(settings, task.spec(), 3), other(settings, task.spec(), 4);
  const at::Tensor seen = torch::randn({5, 2});
  EXPECT_TRUE(at::equal(networks.mean(seen), same.mean(seen)));
  EXPECT_FALSE(at::equal(networks.mean(seen), other.mean(seen)));
}

TEST(PpoSettings, NamesAndDefaultsAreThoseOfRslRl) {
  // rsl_rl 5.5, PPO.__init__ and MLPModel.__init__.
  config::Fields fields;
  PpoSettings algorithm;
  describe(fields, algorithm);
  const config::Json expected = {{"num_learning_epochs", 5},
                                 {"num_mini_batches", 4},
                                 {"clip_param", 0.2},
                                 {"gamma", 0.99},
                                 {"lam", 0.95},
                                 {"value_loss_coef", 1.0},
                                 {"entropy_coef", 0.01},
                                 {"learning_rate", 0.001},
                                 {"max_grad_norm", 1.0},
                                 {"schedule", "adaptive"},
                                 {"use_clipped_value_loss", true},
                                 {"desired_kl", 0.01}};
  const config::Json found = fields.to_json();
  for (const auto& [name, value] : expected.items()) EXPECT_EQ(found.at(name), value) << name;
}

TEST(PpoSettings, ARolloutThatDoesNotDivideNamesTheNearestNumbersOfEnvironments) {
  RunnerSettings runner;
  PpoSettings ppo;
  runner.num_steps_per_env = 6, ppo.num_mini_batches = 4;
  EXPECT_EQ(message_of([&] { check(runner, ppo, 10); }), "");
  const std::string message = message_of([&] { check(runner, ppo, 11); });
  EXPECT_NE(message.find("66 transitions"), std::string::npos) << message;
  EXPECT_NE(message.find("the nearest n_envs that do: 10 and 12"), std::string::npos) << message;
  EXPECT_EQ(message_of([&] { check(runner, ppo, 12); }), "");
}

TEST(PpoSettings, WhatIsOutOfRangeIsNamed) {
  PpoSettings ppo;
  ppo.gamma = 1.5;
  EXPECT_NE(message_of([&] { check(ppo); }).find("algorithm.gamma = 1.5"), std::string::npos);
  PolicySettings policy;
  policy.actor_hidden_dims = {64, 0};
  EXPECT_NE(message_of([&] { check(policy); }).find("policy.actor_hidden_dims"), std::string::npos);
}

TEST(PpoPresets, DivideIntoMinibatches) {
  for (const char* task : {"cartpole-balance", "cartpole-swingup", "quadruped-velocity", "Ant-v5", "Humanoid-v5",
                           "Reacher-v5", "Pusher-v5", "InvertedDoublePendulum-v5", "a task without a preset"}) {
    const PpoRunSettings s = preset(task);
    EXPECT_EQ(message_of([&] { check(s.runner, s.algorithm, s.n_envs), check(s.policy); }), "") << task;
  }
}

}  // namespace
}  // namespace cohort::rl
