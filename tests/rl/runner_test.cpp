// PPO on a task of a few lines.
#include "rl/runner.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "rl/acting_ppo.h"
#include "rl/environments.h"
#include "rl/point_task.h"
#include "rl/recall_task.h"
#include "train/checkpoint_writer.h"
#include "weights/checkpoint.h"

namespace cohort::rl {
namespace {

PolicySettings small_policy() {
  PolicySettings policy;
  policy.actor_hidden_dims = policy.critic_hidden_dims = {16, 16};
  return policy;
}

struct PointTraining {
  explicit PointTraining(const PointSettings& point = {.n_envs = 32}, std::uint64_t seed = 1)
      : PointTraining(RunnerSettings{.seed = seed, .num_steps_per_env = 16}, {}, point) {}
  explicit PointTraining(const RunnerSettings& settings, const PpoSettings& ppo = {},
                         const PointSettings& point = {.n_envs = 32})
      : task(point), runner(task, settings, ppo, small_policy()) {}
  Iteration train(int iterations) {
    Iteration last;
    for (int i = 0; i < iterations; ++i) last = runner.iterate();
    return last;
  }
  PointTask task;
  PpoRunner runner;
};

bool same_networks(const PpoRunner& a, const PpoRunner& b) {
  const weights::NamedTensors one = weights::module_state(*a.networks()), other = weights::module_state(*b.networks());
  for (std::size_t i = 0; i < one.size(); ++i)
    if (!at::equal(one[i].second, other[i].second)) return false;
  return one.size() == other.size();
}

TEST(PpoRunner, LearnsToStayAtZero) {
  PointTraining training;
  const Iteration first = training.train(3), last = training.train(47);
  // 20 steps with at most 1 each; who pushes at random has 10.5.
  EXPECT_LT(first.episodes.mean_return, 15.5);
  EXPECT_GT(last.episodes.mean_return, 17.5);
  EXPECT_LT(last.noise_std, 1.0);
}

TEST(PpoRunner, TheSameSeedGivesTheSameBits) {
  PointTraining one, same, other({.n_envs = 32}, 2);
  const Iteration a = one.train(4), b = same.train(4), c = other.train(4);
  EXPECT_TRUE(same_networks(one.runner, same.runner));
  EXPECT_EQ(a.losses.loss, b.losses.loss);
  EXPECT_EQ(a.episodes.mean_return, b.episodes.mean_return);
  EXPECT_NE(a.losses.loss, c.losses.loss);
}

TEST(PpoRunner, ThreadsThatActTogetherDoWhatTheNetworksDoInOneBatch) {
  // One piece of rows, and three.
  for (const int n : {32, 600}) {
    PointTask task({.n_envs = n});
    PpoRunner runner(task, {.num_steps_per_env = 4}, {}, small_policy(), {.threads = 2});
    runner.iterate();
    const at::NoGradGuard no_grad;
    const ActorCritic fresh(small_policy(), task.spec(), 1);  // as it was when it acted
    for (std::int64_t t = 0; t < 4; ++t) {
      const at::Tensor seen = whole_rows(fresh.normalize(runner.rollout().observations[t]));
      EXPECT_TRUE(at::equal(runner.rollout().means[t], fresh.mean(seen).narrow(0, 0, n))) << n << " " << t;
      EXPECT_TRUE(at::equal(runner.rollout().values[t], fresh.value(seen).narrow(0, 0, n))) << n << " " << t;
    }
  }
}

TEST(PpoRunner, ResumesToTheSameBits) {
  const TemporaryFolder folder("cohort-rl-test-");
  PointTraining whole, first;
  whole.train(9);
  first.train(4);
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path()), 0);
    writer.save(first.runner.checkpoint());
    first.train(1);  // the copy must not follow
    writer.finish();
  }
  PointTraining resumed;
  const auto path = weights::CheckpointFolder(folder.path()).checkpoint(4);
  resumed.runner.resume(weights::read_checkpoint(path), path.string());
  EXPECT_EQ(resumed.runner.iteration(), 4);
  resumed.train(5);
  EXPECT_TRUE(same_networks(whole.runner, resumed.runner));
}

RunnerSettings averaging(const std::string& precision = "fp32") {
  RunnerSettings settings{.num_steps_per_env = 16, .precision = precision};
  settings.ema.enabled = true;
  return settings;
}

bool same_tensors(const weights::NamedTensors& a, const weights::NamedTensors& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i].first != b[i].first || !at::equal(a[i].second, b[i].second)) return false;
  return a.size() == b.size();
}

TEST(PpoRunner, LearnsInBf16) {
  PointTraining training(RunnerSettings{.num_steps_per_env = 16, .precision = "bf16"});
  const Iteration first = training.train(3), last = training.train(47);
  EXPECT_LT(first.episodes.mean_return, 15.5);
  EXPECT_GT(last.episodes.mean_return, 17.5);
  for (const auto& [name, tensor] : training.runner.checkpoint().model) EXPECT_NE(tensor.scalar_type(), at::kBFloat16);
}

TEST(PpoRunner, TheAverageFollowsTheWeightsAfterEachStepOfTheOptimizer) {
  RunnerSettings settings = averaging();
  settings.ema.min_decay = settings.ema.max_decay = 0.9;
  PpoSettings one_step;
  one_step.num_learning_epochs = one_step.num_mini_batches = 1;
  PointTraining training(settings, one_step);
  at::Tensor expected;
  for (int i = 0; i < 5; ++i) {
    training.train(1);
    const at::Tensor weight = training.runner.networks()->actor().parameters_of_layers()[0].first.detach();
    // Diffusion Policy's first two updates copy.
    expected = i < 2 ? weight.clone() : 0.9 * expected + 0.1 * weight;
  }
  const weights::CheckpointContent content = training.runner.checkpoint();
  EXPECT_EQ(content.state.ema_updates, 5);
  bool found = false;
  for (std::size_t i = 0; i < content.ema.size(); ++i) {
    const auto& [name, tensor] = content.ema[i];
    EXPECT_EQ(name, content.model[i].first);
    if (name.starts_with("observations.")) EXPECT_TRUE(at::equal(tensor, content.model[i].second)) << name;
    if (name != "actor.0.weight") continue;
    found = true;
    EXPECT_LT((tensor - expected).abs().max().item<double>(), 1e-6);
    EXPECT_GT((tensor - content.model[i].second).abs().max().item<double>(), 1e-4);
  }
  EXPECT_TRUE(found);
  PointTraining twenty(averaging());
  twenty.train(1);
  EXPECT_EQ(twenty.runner.checkpoint().state.ema_updates, 20) << "5 passes over 4 minibatches";
}

TEST(PpoRunner, WithAnAverageAndInBf16ResumesToTheSameBits) {
  const TemporaryFolder folder("cohort-rl-test-");
  PointTraining whole(averaging("bf16")), first(averaging("bf16"));
  whole.train(5);
  first.train(3);
  const auto path = weights::CheckpointFolder(folder.path()).checkpoint(3);
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path()), 0);
    writer.save(first.runner.checkpoint());
    writer.finish();
  }
  EXPECT_TRUE(std::filesystem::exists(path / weights::kEmaFile));
  PointTraining resumed(averaging("bf16"));
  resumed.runner.resume(weights::read_checkpoint(path), path.string());
  resumed.train(2);
  EXPECT_TRUE(same_networks(whole.runner, resumed.runner));
  const weights::CheckpointContent one = whole.runner.checkpoint(), other = resumed.runner.checkpoint();
  EXPECT_TRUE(same_tensors(one.ema, other.ema));
  EXPECT_FALSE(same_tensors(one.ema, one.model));
  EXPECT_EQ(one.state.ema_updates, other.state.ema_updates);
}

TEST(PpoRunner, AnAverageThatTheCheckpointLacksStartsFromItsWeights) {
  PointTraining without, with(averaging());
  without.train(2);
  const weights::CheckpointContent content = without.runner.checkpoint();
  EXPECT_TRUE(content.ema.empty());
  with.runner.resume(content, "the test");
  const weights::CheckpointContent now = with.runner.checkpoint();
  EXPECT_TRUE(same_tensors(now.ema, now.model));
  EXPECT_TRUE(same_tensors(now.model, content.model));
  EXPECT_EQ(now.state.ema_updates, 0);
}

TEST(PpoRunner, Fp16IsRefusedWithWhatStandsForIt) {
  const RunnerSettings with_scaling{.precision = "fp16"}, unknown{.precision = "int8"};
  const auto refused = [](const RunnerSettings& settings) {
    try {
      check(settings, {}, 32);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused(with_scaling).find("take precision=bf16"), std::string::npos) << refused(with_scaling);
  EXPECT_NE(refused(unknown).find("'int8' is no precision"), std::string::npos) << refused(unknown);
  for (const char* taken : {"fp32", "bf16", "no"}) EXPECT_EQ(refused({.precision = taken}), "") << taken;
}

TEST(PpoRunner, GoesOnWhereEnvironmentsBreak) {
  PointTraining training({.n_envs = 32, .breaks_at = 3});
  const Iteration last = training.train(5);
  EXPECT_GT(last.episodes.broken, 10);
  EXPECT_EQ(last.number, 5);
}

TEST(PpoRunner, RewardTermsAreTheMeanOfEveryControlStepThatBrokeNothing) {
  // One term, so that its mean is that of the rewards; environments of an odd seed break in their third step.
  PointTraining training({.n_envs = 32, .breaks_at = 3});
  const std::int64_t n = 32;
  for (int iteration = 0; iteration < 3; ++iteration) {
    const Iteration figures = training.runner.iterate();
    ASSERT_EQ(figures.reward_terms.size(), 1u);
    EXPECT_EQ(figures.reward_terms[0].first, "near");
    EXPECT_TRUE(std::isfinite(figures.reward_terms[0].second));
    EXPECT_LT(figures.reward_terms[0].second, 1) << "1 is the most";
  }
  // Steps by hand.
  PointTask task({.n_envs = static_cast<int>(n), .breaks_at = 3});
  Environments environments(task, 5);
  double sum = 0, steps = 0;
  for (int t = 0; t < 10; ++t) {
    const EnvironmentStep& step = environments.step(at::full({n, 2}, 0.1f * static_cast<float>(t)));
    const at::Tensor whole = 1 - step.broken;
    sum += (step.rewards * whole).to(at::kDouble).sum().item<double>();
    steps += whole.sum().item<double>();
  }
  const Environments::RewardTerms terms = environments.take_reward_terms();
  EXPECT_EQ(static_cast<double>(terms.steps), steps);
  EXPECT_LT(terms.steps, 10 * n) << "some broke";
  ASSERT_EQ(terms.sums.size(), 1u);
  EXPECT_NEAR(terms.sums[0], sum, 1e-9 * steps);
  EXPECT_EQ(environments.take_reward_terms().steps, 0) << "they were taken";
}

TEST(PpoRunner, LossesThatAreNotFiniteEndTheTraining) {
  PointTraining training({.n_envs = 32, .bad_rewards = true});
  try {
    training.train(3);
    ADD_FAILURE() << "went on";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("PPO diverged in iteration 1"), std::string::npos) << e.what();
  }
}

TEST(PpoRunner, CutOffEpisodesAreWorthWhatComesAfterThem) {
  // A reward of nearly 1 in every step and a horizon of 4: with bootstrapping the value goes towards 1 / (1 - gamma),
  // far beyond the 4 that an episode brings.
  PointTask task({.n_envs = 32, .horizon = 4, .edge = 1e9});
  PpoSettings ppo;
  ppo.gamma = 0.9, ppo.use_clipped_value_loss = false, ppo.learning_rate = 3e-3, ppo.schedule = "fixed";
  PpoRunner runner(task, {.num_steps_per_env = 16}, ppo, small_policy());
  for (int i = 0; i < 60; ++i) runner.iterate();
  const at::NoGradGuard no_grad;
  const double value = runner.networks()->value(runner.networks()->normalize(at::zeros({16, 2}))).mean().item<double>();
  EXPECT_GT(value, 7);
  EXPECT_LT(value, 12);
}

TEST(PpoPolicy, AnActionDoesNotDependOnWhoElseActs) {
  PointTraining training({.n_envs = 53});
  training.train(2);
  ActingPpo trained(ppo_policy(training.runner.networks()), training.task);
  PointTask task({.n_envs = 53});
  std::vector<std::int32_t> all(53);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::uint64_t> seeds(all.begin(), all.end());
  task.reset(all, seeds);
  trained.actor.begin(all, seeds, "");
  std::vector<float> together(106, -9), alone(106, -9);
  trained.actor.act(task, all, make_view(together.data(), {53, 2}));
  for (const std::int32_t env : {0, 7, 31, 52}) {
    const std::vector<std::int32_t> one{env};
    trained.actor.act(task, one, make_view(alone.data(), {53, 2}));
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t place = 2 * static_cast<std::size_t>(env) + i;
      EXPECT_EQ(alone[place], together[place]) << env;
    }
  }
  EXPECT_EQ(alone[4], -9) << "rows of others are left alone";
}

TEST(PpoPolicy, ATaskWithOtherActionsOrObservationsIsRefused) {
  const TemporaryFolder folder("cohort-rl-test-");
  PointTraining training;
  weights::CheckpointContent content = training.runner.checkpoint();
  content.state.configuration =
      R"({"job": "ppo", "task": "point", "policy": {"actor_hidden_dims": [16, 16], "critic_hidden_dims": [16, 16]}})";
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path()), 0);
    writer.save(content);
    writer.finish();
  }
  const auto refused_with = [&](const tasks::Task& task) {
    try {
      ActingPpo(load_ppo_policy(folder.path(), {}), task);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const RecallTask one_action(2);
  const PointTask one_observation({.shows_speed = false});
  EXPECT_NE(refused_with(one_action).find("its actions have 2 numbers, those of recall have 1"), std::string::npos)
      << refused_with(one_action);
  EXPECT_NE(refused_with(one_observation).find("has learnt point from 2 observations; point has 1"), std::string::npos)
      << refused_with(one_observation);
  EXPECT_EQ(refused_with(PointTask()), "");
}

TEST(PpoPolicy, ActsWithTheAverageWhereThereIsOneAndWithTheWeightsOnRequest) {
  const TemporaryFolder folder("cohort-rl-test-");
  PointTraining training(averaging());
  training.train(3);
  weights::CheckpointContent content = training.runner.checkpoint();
  content.state.configuration =
      R"({"job": "ppo", "task": "point", "policy": {"actor_hidden_dims": [16, 16], "critic_hidden_dims": [16, 16]}})";
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path()), 0);
    writer.save(content);
    writer.finish();
  }
  PointTask task({.n_envs = 1});
  const std::vector<std::int32_t> envs{0};
  const std::vector<std::uint64_t> seeds{5};
  task.reset(envs, seeds);
  const auto action_of = [&](std::unique_ptr<policy::Policy> policy) {
    ActingPpo acting(std::move(policy), task);
    std::vector<float> action(2, -9);
    acting.actor.begin(envs, seeds, "");
    acting.actor.act(task, envs, make_view(action.data(), {1, 2}));
    return action;
  };
  const std::vector<float> weights = action_of(ppo_policy(training.runner.networks()));
  std::vector<float> average;
  {
    const train::EmaWeightsGuard averaged(training.runner.ema());
    average = action_of(ppo_policy(training.runner.networks()));
  }
  EXPECT_NE(weights, average);
  auto from_file = load_ppo_policy(folder.path(), {});
  const std::string summary = from_file->spec().summary;
  EXPECT_NE(summary.find("moving average of the weights"), std::string::npos) << summary;
  EXPECT_EQ(action_of(std::move(from_file)), average);
  EXPECT_EQ(action_of(load_ppo_policy(folder.path(), {.averaged = false})), weights);
}

TEST(PpoPolicy, ActsFromItsCheckpointAsItLearnt) {
  const TemporaryFolder folder("cohort-rl-test-");
  PointTraining training;
  training.train(2);
  weights::CheckpointContent content = training.runner.checkpoint();
  content.state.configuration =
      R"({"job": "ppo", "task": "point", "policy": {"actor_hidden_dims": [16, 16], "critic_hidden_dims": [16, 16]}})";
  EXPECT_FALSE(is_ppo_run(folder.path()));
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path() / "checkpoints"), 0);
    writer.save(content);
    writer.finish();
  }
  EXPECT_TRUE(is_ppo_run(folder.path()));
  PointTask task({.n_envs = 4});
  const std::vector<std::int32_t> envs{0, 1, 2, 3};
  const std::vector<std::uint64_t> seeds{5, 6, 7, 8};
  task.reset(envs, seeds);
  ActingPpo from_file(load_ppo_policy(folder.path(), {}), task), own(ppo_policy(training.runner.networks()), task);
  std::vector<float> one(8, -9), other(8, -7);
  from_file.actor.begin(envs, seeds, "");
  from_file.actor.act(task, envs, make_view(one.data(), {4, 2}));
  own.actor.begin(envs, seeds, "");
  own.actor.act(task, envs, make_view(other.data(), {4, 2}));
  EXPECT_EQ(one, other);
  // Copies of a run (zip, object stores) may have lost their links.
  std::filesystem::remove(folder.path() / "checkpoints" / "last");
  EXPECT_TRUE(is_ppo_run(folder.path()));
  ActingPpo of_copy(load_ppo_policy(folder.path(), {}), task);
  std::vector<float> again(8, -5);
  of_copy.actor.begin(envs, seeds, "");
  of_copy.actor.act(task, envs, make_view(again.data(), {4, 2}));
  EXPECT_EQ(again, other);
}

}  // namespace
}  // namespace cohort::rl
