// Several ranks beside one: threads of this process, each with its share of the environments.
#include "rl/ranks.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "rl/point_task.h"
#include "rl/runner.h"
#include "rl/thread_ranks.h"
#include "train/rank_threads.h"

namespace cohort::rl {
namespace {

/// One of so many, for what needs no exchange.
class PretendedRanks final : public Ranks {
 public:
  PretendedRanks(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

 private:
  int rank_, size_;
};

constexpr int kEnvironments = 48, kSteps = 16;

/// A training of a rank: what it did and where it stands.
struct RankTraining {
  explicit RankTraining(Ranks* ranks, int size, const PpoSettings& ppo = {},
                        const RunnerSettings& settings = {.seed = 3, .num_steps_per_env = kSteps})
      : task({.n_envs = kEnvironments / size}), runner(task, settings, ppo, policy(), {.ranks = ranks}) {}
  static PolicySettings policy() {
    PolicySettings settings;
    settings.actor_hidden_dims = settings.critic_hidden_dims = {16, 16};
    return settings;
  }
  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : runner.networks()->parameters()) all.push_back(parameter.grad().clone());
    return all;
  }
  PointTask task;
  PpoRunner runner;
};

TEST(Ranks, TwoWithHalfOfTheEnvironmentsActAsOneAndFindItsGradients) {
  PpoSettings ppo;
  ppo.num_learning_epochs = 1, ppo.num_mini_batches = 1, ppo.learning_rate = 1e-9, ppo.schedule = "fixed";
  RankTraining one(nullptr, 1, ppo);
  const Iteration of_one = one.runner.iterate();
  std::vector<at::Tensor> actions(2), observations(2);
  std::vector<std::vector<at::Tensor>> gradients(2);
  std::vector<Iteration> figures(2);
  const auto errors = train::run_ranks(2, [&](int rank, train::Meeting& meeting) {
    const auto r = static_cast<std::size_t>(rank);
    ThreadRanks ranks(rank, 2, meeting);
    RankTraining two(&ranks, 2, ppo);
    figures[r] = two.runner.iterate();
    actions[r] = two.runner.rollout().actions.clone();
    observations[r] = two.runner.rollout().observations.clone();
    gradients[r] = two.gradients();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2, ""));
  EXPECT_TRUE(at::equal(at::cat(observations, 1), one.runner.rollout().observations)) << "by global id";
  EXPECT_LT((at::cat(actions, 1) - one.runner.rollout().actions).abs().max().item<double>(), 1e-6);
  const std::vector<at::Tensor> expected = one.gradients();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i]));
    EXPECT_LT((gradients[0][i] - expected[i]).abs().max().item<double>(), 1e-5) << i;
    EXPECT_GT(expected[i].abs().max().item<double>(), 1e-4) << i;
  }
  EXPECT_EQ(figures[0].steps, of_one.steps);
  EXPECT_NEAR(figures[1].losses.kl, of_one.losses.kl, 1e-6);
  EXPECT_NEAR(figures[0].losses.value, of_one.losses.value, 1e-5 * of_one.losses.value);
}

TEST(Ranks, ThreeGoOnTogetherAsOneWould) {
  RankTraining one(nullptr, 1);
  Iteration of_one, of_three;
  for (int i = 0; i < 3; ++i) of_one = one.runner.iterate();
  std::vector<std::vector<at::Tensor>> weights(3);
  const auto errors = train::run_ranks(3, [&](int rank, train::Meeting& meeting) {
    ThreadRanks ranks(rank, 3, meeting);
    RankTraining three(&ranks, 3);
    Iteration last;
    for (int i = 0; i < 3; ++i) last = three.runner.iterate();
    weights[static_cast<std::size_t>(rank)] = three.runner.networks()->parameters();
    if (rank == 0) of_three = last;
  });
  EXPECT_EQ(errors, std::vector<std::string>(3, ""));
  for (std::size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_TRUE(at::equal(weights[0][i], weights[1][i])) << "ranks drift apart";
    EXPECT_TRUE(at::equal(weights[0][i], weights[2][i]));
  }
  EXPECT_EQ(of_three.learning_rate, of_one.learning_rate) << "the KL divergence is that of all";
  EXPECT_NEAR(of_three.losses.kl, of_one.losses.kl, 1e-3 + 0.05 * of_one.losses.kl);
  EXPECT_EQ(of_three.episodes.ended, of_one.episodes.ended);
}

TEST(Ranks, FiveLearnTogetherWithTheirOwnPartition) {
  EXPECT_TRUE(divides_as_one_rank(3));
  EXPECT_FALSE(divides_as_one_rank(5));
  std::vector<std::vector<at::Tensor>> weights(5);
  std::vector<Iteration> last(5);
  const auto errors = train::run_ranks(5, [&](int rank, train::Meeting& meeting) {
    const auto r = static_cast<std::size_t>(rank);
    ThreadRanks ranks(rank, 5, meeting);
    PointTask task({.n_envs = 8});
    PpoRunner runner(task, {.seed = 3, .num_steps_per_env = kSteps}, {}, RankTraining::policy(), {.ranks = &ranks});
    EXPECT_EQ(runner.shares().first_environment(), 8 * rank);
    for (int i = 0; i < 2; ++i) last[r] = runner.iterate();
    weights[r] = runner.networks()->parameters();
  });
  EXPECT_EQ(errors, std::vector<std::string>(5, ""));
  EXPECT_EQ(last[0].steps, 2 * 40 * kSteps);
  for (std::size_t i = 0; i < weights[0].size(); ++i)
    for (int rank = 1; rank < 5; ++rank)
      EXPECT_TRUE(at::equal(weights[0][i], weights[static_cast<std::size_t>(rank)][i]));
}

TEST(Ranks, InBf16TwoHaveTheSameWeightsAndTheSameAverage) {
  RunnerSettings settings{.seed = 3, .num_steps_per_env = kSteps, .precision = "bf16"};
  settings.ema.enabled = true;
  std::vector<weights::NamedTensors> averages(2), weights(2);
  std::vector<Iteration> last(2);
  const auto errors = train::run_ranks(2, [&](int rank, train::Meeting& meeting) {
    const auto r = static_cast<std::size_t>(rank);
    ThreadRanks ranks(rank, 2, meeting);
    RankTraining two(&ranks, 2, {}, settings);
    for (int i = 0; i < 2; ++i) last[r] = two.runner.iterate();
    const weights::CheckpointContent content = two.runner.checkpoint();
    for (const auto& [name, tensor] : content.ema) averages[r].emplace_back(name, tensor.detach().clone());
    for (const auto& [name, tensor] : content.model) weights[r].emplace_back(name, tensor.detach().clone());
  });
  EXPECT_EQ(errors, std::vector<std::string>(2, ""));
  ASSERT_EQ(averages[0].size(), averages[1].size());
  ASSERT_GT(averages[0].size(), 0u);
  double apart = 0;
  for (std::size_t i = 0; i < averages[0].size(); ++i) {
    EXPECT_TRUE(at::equal(averages[0][i].second, averages[1][i].second)) << averages[0][i].first;
    EXPECT_TRUE(at::equal(weights[0][i].second, weights[1][i].second)) << weights[0][i].first;
    apart += (averages[0][i].second - weights[0][i].second).abs().max().item<double>();
  }
  EXPECT_GT(apart, 1e-4) << "the average lags behind";
  RankTraining one(nullptr, 1, {}, settings);
  Iteration of_one;
  for (int i = 0; i < 2; ++i) of_one = one.runner.iterate();
  EXPECT_NEAR(last[0].losses.value, of_one.losses.value, 0.05 * of_one.losses.value);
}

TEST(Ranks, ACheckpointOfTwoIsContinuedByOneAndByThree) {
  weights::CheckpointContent kept;
  at::Tensor now_of_two;
  std::vector<at::Tensor> halves(2);
  auto errors = train::run_ranks(2, [&](int rank, train::Meeting& meeting) {
    ThreadRanks ranks(rank, 2, meeting);
    RankTraining two(&ranks, 2);
    for (int i = 0; i < 2; ++i) two.runner.iterate();
    weights::CheckpointContent content = two.runner.checkpoint();
    halves[static_cast<std::size_t>(rank)] = two.runner.environments().observations().clone();
    if (rank != 0) return;
    for (auto* part : {&content.model, &content.optimizer, &content.random})
      for (auto& [name, tensor] : *part) tensor = tensor.detach().clone();
    kept = content;
  });
  EXPECT_EQ(errors, std::vector<std::string>(2, ""));
  now_of_two = at::cat(halves, 0);
  RankTraining one(nullptr, 1);
  one.runner.resume(kept, "the test");
  EXPECT_TRUE(at::equal(one.runner.environments().observations(), now_of_two));
  EXPECT_EQ(one.runner.iteration(), 2);
  std::vector<at::Tensor> thirds(3);
  errors = train::run_ranks(3, [&](int rank, train::Meeting& meeting) {
    ThreadRanks ranks(rank, 3, meeting);
    RankTraining three(&ranks, 3);
    three.runner.resume(kept, "the test");
    thirds[static_cast<std::size_t>(rank)] = three.runner.environments().observations().clone();
  });
  EXPECT_EQ(errors, std::vector<std::string>(3, ""));
  EXPECT_TRUE(at::equal(at::cat(thirds, 0), now_of_two));
}

TEST(Shares, AMinibatchTakesTheSameTransitionsOnAnyNumberOfRanks) {
  Ranks alone;
  const Shares all = share_environments(kEnvironments, kSteps, 4, alone);
  const at::Tensor whole = minibatch_order(all, kSteps, 4, 9, 2);
  EXPECT_TRUE(at::equal(std::get<0>(whole.sort()), at::arange(kEnvironments * kSteps, at::kLong)));
  EXPECT_FALSE(at::equal(whole, minibatch_order(all, kSteps, 4, 9, 3)));
  for (const int size : {2, 4, 12}) {
    for (int batch = 0; batch < 4; ++batch) {
      std::vector<std::int64_t> of_ranks;
      for (int rank = 0; rank < size; ++rank) {
        PretendedRanks ranks(rank, size);
        const Shares shares = share_environments(kEnvironments, kSteps, 4, ranks);
        const std::int64_t n = kEnvironments / size, share = n * kSteps / 4;
        const at::Tensor rows = minibatch_order(shares, kSteps, 4, 9, 2).narrow(0, batch * share, share);
        for (std::int64_t i = 0; i < share; ++i) {
          const std::int64_t row = rows[i].item<std::int64_t>();
          of_ranks.push_back(row / n * kEnvironments + shares.first_environment() + row % n);
        }
      }
      const std::int64_t share = kEnvironments * kSteps / 4;
      at::Tensor expected = std::get<0>(whole.narrow(0, batch * share, share).sort());
      std::sort(of_ranks.begin(), of_ranks.end());
      EXPECT_TRUE(at::equal(torch::tensor(of_ranks, at::kLong), expected)) << size << " " << batch;
    }
  }
}

TEST(Shares, MomentsAreThoseOfAllRows) {
  torch::manual_seed(1);
  const at::Tensor x = 3 + 2 * at::randn({7, 48, 5});
  Ranks alone;
  const Moments found = moments_of(x, share_environments(48, 8, 4, alone));
  const at::Tensor rows = x.reshape({-1, 5}).to(at::kDouble);
  EXPECT_EQ(found.count, 7 * 48);
  EXPECT_LT((found.mean - rows.mean(0)).abs().max().item<double>(), 1e-12);
  EXPECT_LT((found.m2 / (found.count - 1) - rows.var(0)).abs().max().item<double>(), 1e-12);
}

TEST(Shares, WhatDoesNotDivideIsRefusedWithTheNearestThatDoes) {
  PretendedRanks two(0, 2), five(0, 5);
  const auto message = [](Ranks& ranks, std::int64_t n) {
    try {
      share_environments(n, 24, 4, ranks);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message(two, 33).find("the nearest that do: 32 and 34"), std::string::npos) << message(two, 33);
  EXPECT_NE(message(five, 41).find("the nearest that do: 40 and 45"), std::string::npos) << message(five, 41);
  EXPECT_EQ(message(five, 40), "");
  EXPECT_EQ(message(two, 2048), "");
}

}  // namespace
}  // namespace cohort::rl
