#include "rl/environments.h"

#include <cmath>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "rl/actor_critic.h"
#include "rl/point_task.h"

namespace cohort::rl {
namespace {

at::Tensor pushes(std::int64_t n, std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn({n, 2}) * 3;
}

TEST(Environments, BeginAnewAfterTheirEndAndShowWhatItWasLike) {
  PointTask task({.n_envs = 3, .horizon = 5, .edge = 100});
  Environments environments(task, 1);
  for (int step = 1; step <= 5; ++step) {
    const at::Tensor before = environments.observations().clone();
    const EnvironmentStep& result = environments.step(pushes(3, static_cast<std::uint64_t>(step)));
    const float ended = step == 5 ? 3 : 0;
    EXPECT_EQ(result.dones.sum().item<float>(), ended);
    EXPECT_EQ(result.cut_off.sum().item<float>(), ended);
    EXPECT_FALSE(at::equal(before, result.final_observations));
    // A new episode stands still at the start; the end of the old one did not.
    EXPECT_EQ(at::equal(environments.observations(), result.final_observations), step != 5);
    if (step == 5) EXPECT_EQ(environments.observations().select(1, 1).abs().max().item<float>(), 0);
  }
  EXPECT_EQ(task.resets, 6);
  EXPECT_EQ(environments.episodes().ended, 3);
  EXPECT_EQ(environments.episodes().mean_length, 5);
}

TEST(Environments, AStateWithoutAFutureIsNoCutOff) {
  PointTask task({.n_envs = 2, .horizon = 1000, .edge = 1.5});
  Environments environments(task, 1);
  bool over = false;
  for (int step = 0; step < 200 && !over; ++step) {
    const EnvironmentStep& result = environments.step(at::full({2, 2}, 2.0f));
    over = result.dones.any().item<bool>();
    EXPECT_FALSE(result.cut_off.any().item<bool>());
  }
  EXPECT_TRUE(over);
}

TEST(Environments, ThoseThatBreakAreResetAndCounted) {
  PointTask task({.n_envs = 16, .horizon = 10, .edge = 100, .breaks_at = 4});
  Environments environments(task, 1);
  float broken = 0;
  for (int step = 1; step <= 8; ++step) {
    const EnvironmentStep& result = environments.step(pushes(16, 7));
    EXPECT_TRUE(result.rewards.isfinite().all().item<bool>());
    EXPECT_TRUE(environments.observations().isfinite().all().item<bool>());
    EXPECT_FALSE((result.broken * result.cut_off).any().item<bool>());
    EXPECT_TRUE(at::equal(result.broken, result.broken * result.dones));
    broken += result.broken.sum().item<float>();
  }
  EXPECT_GT(broken, 0);
  EXPECT_EQ(static_cast<float>(environments.episodes().broken), broken);
  EXPECT_EQ(environments.episodes().ended, 0) << "a return that was broken off says nothing";
}

TEST(Environments, EpisodesAreKeyedByGlobalIdWhoeverSimulatesThem) {
  PointTask whole_task({.n_envs = 6, .horizon = 4}), share_task({.n_envs = 2, .horizon = 4});
  Environments whole(whole_task, 9), share(share_task, 9, 3);
  for (int step = 0; step < 10; ++step) {
    const at::Tensor actions = pushes(6, static_cast<std::uint64_t>(step));
    EXPECT_TRUE(at::equal(whole.observations().narrow(0, 3, 2), share.observations()));
    whole.step(actions);
    share.step(actions.narrow(0, 3, 2));
  }
}

TEST(Environments, GoOnWhereTheirStateWasTaken) {
  const PointSettings settings{.n_envs = 5, .horizon = 7, .edge = 0.8};
  PointTask task(settings), again(settings);
  Environments environments(task, 3);
  for (std::uint64_t step = 0; step < 24; ++step) environments.step(pushes(5, step));
  const weights::NamedTensors state = environments.state();
  Environments restored(again, 3);
  restored.restore(state, "the test");
  EXPECT_TRUE(at::equal(restored.observations(), environments.observations()));
  for (std::uint64_t step = 24; step < 60; ++step) {
    const EnvironmentStep& one = environments.step(pushes(5, step));
    const EnvironmentStep& other = restored.step(pushes(5, step));
    ASSERT_TRUE(at::equal(one.rewards, other.rewards)) << step;
    ASSERT_TRUE(at::equal(one.dones, other.dones)) << step;
    ASSERT_TRUE(at::equal(environments.observations(), restored.observations())) << step;
  }
  EXPECT_EQ(environments.episodes().mean_return, restored.episodes().mean_return);
  EXPECT_EQ(environments.episodes().ended, restored.episodes().ended);
}

TEST(Environments, AStateOfOtherEnvironmentsIsRefused) {
  PointTask task({.n_envs = 5}), other({.n_envs = 6});
  Environments environments(task, 3), more(other, 3);
  try {
    more.restore(environments.state(), "checkpoint-7");
    ADD_FAILURE() << "taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("checkpoint-7 holds 5 environments"), std::string::npos) << e.what();
  }
}

// Of another engine, of other settings of the task, or of a version that kept actions: the run goes on with new episodes.
TEST(Environments, AStateThatTheTaskCannotTakeBeginsNewEpisodes) {
  const PointSettings settings{.n_envs = 5, .horizon = 50, .edge = 100};
  PointTask task(settings);
  Environments environments(task, 3);
  for (std::uint64_t step = 0; step < 7; ++step) environments.step(pushes(5, step));
  weights::NamedTensors less = environments.state(), old = environments.state();
  std::erase_if(less, [](const auto& named) { return named.first == "envs.task.wind"; });
  std::erase_if(old, [](const auto& named) { return named.first.starts_with("envs.task."); });
  old.emplace_back("envs.actions", torch::zeros({5, 7, 2}));
  for (const weights::NamedTensors& state : {less, old}) {
    PointTask again(settings);
    Environments restored(again, 3);
    const at::Tensor first = restored.observations().clone();
    restored.restore(state, "the test");
    EXPECT_EQ(again.resets, 10);
    EXPECT_EQ(restored.observations().select(1, 1).abs().max().item<float>(), 0) << "they stand still at the start";
    EXPECT_FALSE(at::equal(restored.observations(), first)) << "not those that the run began with";
    for (std::uint64_t step = 0; step < 50; ++step) restored.step(pushes(5, step));
    EXPECT_EQ(restored.episodes().mean_length, 50);
  }
}

TEST(Environments, ATaskWithoutRewardsIsRefused) {
  PointTask task({.rewards = false});
  try {
    Environments environments(task, 1);
    ADD_FAILURE() << "taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the task point has no rewards"), std::string::npos) << e.what();
  }
}

TEST(Environments, SuccessIsTheShareOfEpisodesThatReachedTheirGoalInSomeStep) {
  const PointSettings settings{.n_envs = 8, .horizon = 6, .edge = 100, .goal = 0.05};
  PointTask task(settings), again(settings);
  Environments environments(task, 5);
  EXPECT_TRUE(std::isnan(environments.episodes().success_rate)) << "before the first episode has ended";
  std::vector<bool> reached(8);
  double successes = 0, ended = 0;
  const auto step = [&](std::uint64_t seed) {
    const EnvironmentStep& result = environments.step(pushes(8, seed));
    for (std::size_t e = 0; e < 8; ++e) {
      const float at_end = result.final_observations[static_cast<std::int64_t>(e)][0].item<float>();
      reached[e] = reached[e] || std::abs(at_end) < 0.05f;
    }
    if (seed % 6 != 5) return;
    for (std::size_t e = 0; e < 8; ++e) successes += reached[e], ended += 1, reached[e] = false;
  };
  for (std::uint64_t i = 0; i < 33; ++i) step(i);
  EXPECT_DOUBLE_EQ(environments.episodes().success_rate, successes / ended);
  EXPECT_GT(successes, 0);
  EXPECT_LT(successes, ended);
  // In the middle of an episode that has reached its goal already.
  Environments restored(again, 5);
  weights::NamedTensors state = environments.state();
  restored.restore(state, "the test");
  for (std::uint64_t i = 33; i < 36; ++i) environments.step(pushes(8, i)), restored.step(pushes(8, i));
  EXPECT_EQ(restored.episodes().success_rate, environments.episodes().success_rate);
  // A checkpoint of an earlier version does not say which succeeded: not known is not none.
  for (auto& [name, tensor] : state)
    if (name == "envs.ended") tensor = tensor.narrow(1, 0, 2).contiguous();
  restored.restore(state, "the test");
  EXPECT_TRUE(std::isnan(restored.episodes().success_rate));
  EXPECT_EQ(restored.episodes().mean_length, 6);
}

}  // namespace
}  // namespace cohort::rl
