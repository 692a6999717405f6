#include "tasks/push_t/push_t_task.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "tasks/actor.h"
#include "tasks/push_t/push_t.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"

namespace cohort::tasks {
namespace {

/// What a task's rollout says of Push-T, computed with one world.
struct Reference {
  std::int64_t steps = 0;
  double max_reward = 0;
  bool success = false;
};

Reference random_episode(std::uint64_t seed, std::int64_t max_steps) {
  PushT world;
  world.reset(static_cast<std::uint32_t>(seed));
  Reference r;
  while (r.steps < max_steps && !r.success) {
    const RandomStream random(5, RandomPurpose::kAction, seed, static_cast<std::uint64_t>(r.steps));
    const PushTStep step = world.step({kPushTWorld * random.uniform(0), kPushTWorld * random.uniform(1)});
    ++r.steps;
    r.max_reward = std::max(r.max_reward, step.reward);
    r.success = step.success;
  }
  return r;
}

TEST(PushTTask, EpisodesAreThoseOfTheWorldAloneForAnyNumberOfEnvironmentsAndThreads) {
  const auto seeds = consecutive_seeds(10, 6);
  for (const auto& [n_envs, threads] : {std::pair(1, 1), std::pair(4, 3), std::pair(6, 2)}) {
    const auto task = make_task("push-t", {.n_envs = n_envs, .threads = threads});
    const auto random = make_random_actor(5);
    const auto outcomes = run_episodes(*task, *random, seeds, {.max_steps = 40, .instruction = ""});
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      const Reference expected = random_episode(seeds[i], 40);
      EXPECT_EQ(outcomes[i].steps, expected.steps);
      EXPECT_EQ(outcomes[i].success, expected.success);
      EXPECT_EQ(outcomes[i].max_reward, static_cast<float>(expected.max_reward)) << seeds[i];
    }
  }
}

TEST(PushTTask, ObservationsAreGymPushtsInFloat32) {
  const auto task = make_task("push-t", {.n_envs = 2});
  const std::vector<std::int32_t> envs = {0, 1};
  const std::vector<std::uint64_t> seeds = {7, 8};
  task->reset(envs, seeds);
  PushT world;
  world.reset(8);
  std::vector<float> actions = {0, 0, 123, 456};
  task->step(make_view(actions.data(), {2, 2}));
  world.step({123, 456});
  const PushTState state = world.observation();
  const auto corners = world.keypoints();
  const auto seen = task->observation(task->observation_index("state")).span<float>();
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(seen[5 + i], static_cast<float>(state[i]));
  const auto agent = task->observation(task->observation_index("agent_pos")).span<float>();
  EXPECT_EQ(agent[2], static_cast<float>(state[0]));
  const auto points = task->observation(task->observation_index("environment_state")).span<float>();
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(points[16 + i], static_cast<float>(corners[i]));
}

TEST(PushTTask, OffsetsMeanTargetsFromTheAgentAndAreCutToTheWorld) {
  const auto target = make_task("push-t", {}), offset = make_task("push-t", {.overrides = {"action=offset"}});
  EXPECT_EQ(target->spec().action.field, "action");
  EXPECT_EQ(offset->spec().action.field, "action_offset");
  const std::vector<std::int32_t> env = {0};
  const std::vector<std::uint64_t> seed = {3};
  target->reset(env, seed);
  offset->reset(env, seed);
  const auto agent = target->observation(1).span<float>();
  std::vector<float> far = {512, 0}, away = {512, -512};
  for (int i = 0; i < 5; ++i) {
    target->step(make_view(far.data(), {1, 2}));
    offset->step(make_view(away.data(), {1, 2}));
  }
  EXPECT_EQ(agent[0], offset->observation(1).span<float>()[0]);
  EXPECT_EQ(agent[1], offset->observation(1).span<float>()[1]);
}

TEST(PushTTask, AnActionThatIsNotFiniteBreaksItsEnvironmentUntilReset) {
  const auto task = make_task("push-t", {.n_envs = 2});
  const std::vector<std::int32_t> envs = {0, 1};
  const std::vector<std::uint64_t> seeds = {7, 8};
  task->reset(envs, seeds);
  std::vector<float> actions = {std::nanf(""), 0, 100, 100};
  task->step(make_view(actions.data(), {2, 2}));
  EXPECT_EQ(task->broken().span<std::uint8_t>()[0], 1);
  EXPECT_EQ(task->terminated().span<std::uint8_t>()[0], 1);
  EXPECT_EQ(task->broken().span<std::uint8_t>()[1], 0);
  actions[0] = 5;
  task->step(make_view(actions.data(), {2, 2}));
  EXPECT_EQ(task->broken().span<std::uint8_t>()[0], 1);
  task->reset(std::span(envs).first(1), std::span(seeds).first(1));
  task->step(make_view(actions.data(), {2, 2}));
  EXPECT_EQ(task->broken().span<std::uint8_t>()[0], 0);
}

TEST(PushTTask, WhatItHasNotIsRefusedByName) {
  EXPECT_THROW(make_task("push-t", {.engine = "mujoco"}), Error);
  EXPECT_THROW(make_task("push-t", {.overrides = {"action=speed"}}), Error);
  EXPECT_THROW(make_task("push-t", {.overrides = {"beams=3"}}), Error);
  EXPECT_THROW(make_task("push-t", {.overrides = {"depth=0"}}), Error);
  const auto task = make_task("push-t", {});
  const std::vector<std::int32_t> env = {0};
  const std::vector<std::uint64_t> seed = {std::uint64_t{1} << 32};
  EXPECT_THROW(task->reset(env, seed), Error);
  EXPECT_THROW(task->picture("top", env), Error);
  EXPECT_NE(message_of([] { make_task("push_t", {}); }).find("did you mean 'push-t'?"), std::string::npos);
}

TEST(PushTTask, WhatWasSavedGoesOnWithTheSameBits) {
  for (const char* meaning : {"target", "offset"}) {
    const TaskSettings settings{.n_envs = 3, .threads = 2, .overrides = {std::string("action=") + meaning}};
    const auto task = make_push_t_task(settings), again = make_push_t_task(settings);
    const std::vector<std::int32_t> all{0, 1, 2}, one{1};
    task->reset(all, std::vector<std::uint64_t>{1, 2, 3});
    const auto actor = make_random_actor(4);
    std::vector<float> actions(6);
    const ArrayView view = make_view(actions.data(), {3, 2});
    actor->begin(all, std::vector<std::uint64_t>{1, 2, 3}, "");
    for (int t = 0; t < 40; ++t) {
      if (t == 15) task->reset(one, std::vector<std::uint64_t>{7});
      actor->act(*task, all, view);
      task->step(view);
    }
    again->load(task->save(), "the test");
    for (int t = 0; t < 20; ++t) {
      for (std::size_t f = 0; f < task->spec().observations.size(); ++f) {
        const auto a = task->observation(f).span<float>(), b = again->observation(f).span<float>();
        ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << meaning << ", step " << t;
      }
      actor->act(*task, all, view);
      task->step(view), again->step(view);
    }
  }
}

}  // namespace
}  // namespace cohort::tasks
