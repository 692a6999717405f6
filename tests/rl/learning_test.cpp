// Cart-pole in the simulation loop.
#include <numeric>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/format.h"
#include "rl/acting_ppo.h"
#include "rl/presets.h"
#include "rl/runner.h"
#include "support/today.h"
#include "tasks/registry.h"
#include "weights/named_tensors.h"

namespace cohort::rl {
namespace {

/// Mean return of 64 episodes of unseen seeds.
double mean_return(const std::string& name, tasks::Actor* actor) {
  const auto task = tasks::make_task(name, {.n_envs = 64, .threads = 2});
  std::unique_ptr<tasks::Actor> expert;
  if (!actor) expert = task->make_expert(0), actor = expert.get();
  std::vector<std::int32_t> envs(64);
  std::iota(envs.begin(), envs.end(), 0);
  std::vector<std::uint64_t> seeds(64);
  std::iota(seeds.begin(), seeds.end(), 5000u);
  task->reset(envs, seeds);
  actor->begin(envs, seeds, task->spec().instruction);
  const std::int64_t width = task->spec().action.width();
  std::vector<float> actions(static_cast<std::size_t>(64 * width));
  double sum = 0;
  for (std::int64_t step = 0; step < task->spec().horizon; ++step) {
    actor->act(*task, envs, make_view(actions.data(), {64, width}));
    task->step(make_view(actions.data(), {64, width}));
    for (const float reward : task->reward().span<float>()) sum += static_cast<double>(reward);
  }
  return sum / 64;
}

/// A training with a task's preset.
struct PresetTraining {
  PresetTraining(const std::string& name, std::uint64_t seed, int simulator_threads)
      : PresetTraining(preset(name), seed, simulator_threads) {}
  PresetTraining(PpoRunSettings with, std::uint64_t seed, int simulator_threads) : settings(std::move(with)) {
    const std::string name = settings.task;
    settings.runner.seed = seed;
    task = tasks::make_task(name, {.n_envs = settings.n_envs, .threads = simulator_threads});
    runner = std::make_unique<PpoRunner>(*task, settings.runner, settings.algorithm, settings.policy);
  }
  PpoRunSettings settings;
  std::unique_ptr<tasks::Task> task;
  std::unique_ptr<PpoRunner> runner;
};

/// Of the long trainings a day has one. Empty, or why the day does not have the one of this number.
std::string left_out(std::uint64_t number) {
  const std::uint64_t today = test::today();
  return today % 3 == number ? "" : format("a day has one of three: COHORT_TEST_DAY={} has this one", number);
}

// Processors round differently, and with it a seed's training is another: the presets were tried with many seeds on the
// products of both libraries and all reached it (bench/results/2026-11-28-first-run/). Another processor's may miss it
// once; three of them do not.
void reaches_nineteen_twentieths_of_the_experts_return(const std::string& name) {
  const double expert = mean_return(name, nullptr);
  double learnt = 0;
  for (std::uint64_t seed = 1; seed <= 3 && learnt <= 0.95 * expert; ++seed) {
    PresetTraining training(name, seed, 2);
    Iteration last;
    do {
      last = training.runner->iterate();
    } while (last.number < training.settings.runner.max_iterations && !has_reached_return(training.settings, last));
    ActingPpo trained(ppo_policy(training.runner->networks()), *training.task);
    learnt = mean_return(name, &trained.actor);
    std::printf("%s, seed %d: learnt %.1f (while exploring %.1f), expert %.1f\n", name.c_str(), static_cast<int>(seed),
                learnt, last.episodes.mean_return, expert);
    EXPECT_EQ(last.episodes.broken, 0);
  }
  EXPECT_GT(learnt, 0.95 * expert);
}

TEST(CartpoleLearning, BalanceReachesNineteenTwentiethsOfTheExpertsReturn) {
  if (const std::string why = left_out(0); !why.empty()) GTEST_SKIP() << why;
  reaches_nineteen_twentieths_of_the_experts_return("cartpole-balance");
}

TEST(CartpoleLearning, SwingUpReachesNineteenTwentiethsOfTheExpertsReturn) {
  if (const std::string why = left_out(1); !why.empty()) GTEST_SKIP() << why;
  reaches_nineteen_twentieths_of_the_experts_return("cartpole-swingup");
}

TEST(CartpoleLearning, WithoutVelocitiesItIsBalancedWithMemoryOnly) {
  if (const std::string why = left_out(2); !why.empty()) GTEST_SKIP() << why;
  const double expert = mean_return("cartpole-balance", nullptr);
  double learnt[2];
  for (const bool remembers : {false, true}) {
    PpoRunSettings settings = preset("cartpole-balance");
    settings.n_envs = 256;
    settings.policy.critic_only = {"cart_vel", "pole_vel"};
    settings.policy.class_name = remembers ? "ActorCriticRecurrent" : "ActorCritic";
    settings.policy.rnn_hidden_dim = 32;
    settings.runner.max_iterations = 160;
    PresetTraining training(settings, 1, 2);
    while (training.runner->iteration() < settings.runner.max_iterations) training.runner->iterate();
    ActingPpo trained(ppo_policy(training.runner->networks()), *training.task);
    learnt[remembers] = mean_return("cartpole-balance", &trained.actor);
  }
  std::printf("with memory %.1f, without %.1f, expert with velocities %.1f\n", learnt[1], learnt[0], expert);
  EXPECT_GT(learnt[1], 0.95 * expert);
  EXPECT_LT(learnt[0], 0.95 * expert);
}

TEST(CartpoleTraining, LearnsInBf16) {
  PpoRunSettings settings = preset("cartpole-balance");
  settings.n_envs = 256;
  settings.runner.precision = "bf16";
  PresetTraining training(settings, 1, 2);
  ActingPpo trained(ppo_policy(training.runner->networks()), *training.task);
  const double before = mean_return("cartpole-balance", &trained.actor);
  for (int i = 0; i < 30; ++i) training.runner->iterate();
  const double after = mean_return("cartpole-balance", &trained.actor);
  std::printf("in bf16: %.1f before, %.1f after 30 iterations\n", before, after);
  EXPECT_GT(after, 1.3 * before);
}

TEST(CartpoleTraining, OneAndTwoSimulatorThreadsGiveTheSameBits) {
  PresetTraining one("cartpole-swingup", 4, 1), two("cartpole-swingup", 4, 2);
  for (int i = 0; i < 4; ++i) {
    const Iteration a = one.runner->iterate(), b = two.runner->iterate();
    ASSERT_EQ(a.losses.loss, b.losses.loss) << i;
  }
  const weights::NamedTensors a = weights::module_state(*one.runner->networks()),
                              b = weights::module_state(*two.runner->networks());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
}

TEST(CartpoleTraining, ResumesToTheSameBits) {
  // Past the first ends of episodes (500 steps are 15.6 rollouts), so that environments are of several ages.
  PresetTraining whole("cartpole-balance", 2, 2), resumed("cartpole-balance", 2, 2);
  for (int i = 0; i < 17; ++i) whole.runner->iterate();
  const weights::CheckpointContent live = whole.runner->checkpoint();
  weights::CheckpointContent kept = live;
  for (auto* part : {&kept.model, &kept.optimizer, &kept.random})
    for (auto& [name, tensor] : *part) tensor = tensor.detach().clone();
  resumed.runner->resume(kept, "the test");
  EXPECT_TRUE(at::equal(whole.runner->environments().observations(), resumed.runner->environments().observations()));
  for (int i = 0; i < 3; ++i) {
    const Iteration a = whole.runner->iterate(), b = resumed.runner->iterate();
    ASSERT_EQ(a.losses.loss, b.losses.loss) << i;
    ASSERT_EQ(a.episodes.mean_return, b.episodes.mean_return) << i;
  }
}

}  // namespace
}  // namespace cohort::rl
