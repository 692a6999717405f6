// Gymnasium's tasks beside what gymnasium itself did (data/gymnasium_reference.py).
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include <gtest/gtest.h>

#include "core/files.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

using Json = nlohmann::json;

std::unique_ptr<Task> made(const std::string& name, const TaskSettings& settings, std::string* missing) {
  try {
    return make_task(name, settings);
  } catch (const Error& e) {
    *missing = e.what();
    return nullptr;
  }
}

void set_state(SceneTask& task, const Json& start) {
  const auto write = [&](sim::Field field, const Json& values) {
    const ArrayView view = task.scene().view(field);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) * view.strides[1];
      if (view.type == ElementType::kFloat64) {
        static_cast<double*>(view.data)[at] = values[i].get<double>();
      } else {
        static_cast<float*>(view.data)[at] = values[i].get<float>();
      }
    }
  };
  write(sim::Field::kQpos, start.at("qpos"));
  write(sim::Field::kQvel, start.at("qvel"));
}

/// The largest differences of observations and rewards over the recorded steps.
void follow(const std::string& name, const Json& recorded, const std::string& engine, std::size_t steps,
            double tolerance) {
  std::string missing;
  const std::unique_ptr<Task> made_task = made(name, {.n_envs = 1, .engine = engine}, &missing);
  if (!made_task) GTEST_SKIP() << missing;
  auto& task = dynamic_cast<SceneTask&>(*made_task);
  const TaskSpec& spec = task.spec();
  EXPECT_EQ(spec.horizon, recorded.at("max_episode_steps").get<std::int64_t>());
  EXPECT_DOUBLE_EQ(spec.control_period, recorded.at("period").get<double>());
  EXPECT_EQ(spec.action.low, recorded.at("low").get<std::vector<float>>());
  EXPECT_EQ(spec.action.high, recorded.at("high").get<std::vector<float>>());
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {0};
  task.reset(envs, seeds);
  set_state(task, recorded.at("start"));
  double largest = 0, largest_reward = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const Json& expected = recorded.at("steps")[step];
    auto action = expected.at("action").get<std::vector<float>>();
    // The state that control() sees is that of the last step; the first one's was set behind the task's back.
    task.step(make_view(action.data(), {1, spec.action.width()}));
    std::vector<double> observed;
    const EnvState now = task.state(0);
    for (std::size_t f = 0; f < 2; ++f)
      for (const float x : task.observation(f).span<float>()) observed.push_back(static_cast<double>(x));
    ASSERT_EQ(observed.size(), expected.at("observation").size());
    // float holds seven digits; the state itself is compared where the engine computes in double.
    const std::size_t skipped = now.qpos.size() + now.qvel.size() - observed.size();
    for (std::size_t i = 0; i < observed.size(); ++i) {
      const double wanted = expected.at("observation")[i].get<double>();
      const double exact =
          i + skipped < now.qpos.size() ? now.qpos[i + skipped] : now.qvel[i + skipped - now.qpos.size()];
      EXPECT_NEAR(observed[i], wanted, 1e-6 * std::max(1.0, std::abs(wanted)) + tolerance) << name << " step " << step;
      if (std::abs(wanted) < 10) largest = std::max(largest, std::abs(exact - wanted));
    }
    // The first step's velocity starts from where reset() had put it.
    if (step > 0)
      largest_reward = std::max(largest_reward, std::abs(static_cast<double>(task.reward().span<float>()[0]) -
                                                         expected.at("reward").get<double>()));
    EXPECT_EQ(task.terminated().span<std::uint8_t>()[0] != 0, expected.at("terminated").get<bool>())
        << name << " step " << step;
  }
  EXPECT_LT(largest, tolerance) << name;
  EXPECT_LT(largest_reward, 2e-6 + 40 * tolerance) << name;
  std::printf("%s on %s: states within %.1e, rewards within %.1e\n", name.c_str(), engine.c_str(), largest,
              largest_reward);
}

class GymnasiumTasks : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Names, GymnasiumTasks,
                         ::testing::Values("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Swimmer-v5",
                                           "InvertedPendulum-v5"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

Json recorded(const std::string& name) {
  return Json::parse(read_file(COHORT_SOURCE_DIR "/tests/tasks/data/gymnasium_reference.json")).at("tasks").at(name);
}

TEST_P(GymnasiumTasks, AreGymnasiumsOnTheEngineMujoco) {
  follow(GetParam(), recorded(GetParam()), "mujoco", 60, 1e-9);
}

// Single precision: a few steps, before contacts amplify its rounding.
TEST_P(GymnasiumTasks, AreGymnasiumsToSinglePrecisionOnTheBatchedEngine) {
  follow(GetParam(), recorded(GetParam()), "batched", 5, 1e-4);
}

TEST_P(GymnasiumTasks, TheResetNoiseHasGymnasiumsRange) {
  std::string missing;
  const auto task = made(GetParam(), {.n_envs = 64}, &missing);
  if (!task) GTEST_SKIP() << missing;
  std::vector<std::int32_t> envs(64);
  std::iota(envs.begin(), envs.end(), 0);
  task->reset(envs, consecutive_seeds(0, 64));
  const std::string name = GetParam();
  const double scale = name == "HalfCheetah-v5" || name == "Swimmer-v5" ? 0.1
                       : name == "InvertedPendulum-v5"                  ? 0.01
                                                                        : 5e-3;
  double squares = 0, largest = 0;
  const auto velocities = task->observation(1).span<float>();
  for (const float v : velocities) {
    squares += static_cast<double>(v) * static_cast<double>(v) / static_cast<double>(velocities.size());
    largest = std::max(largest, std::abs(static_cast<double>(v)));
  }
  // Of a normal distribution of that deviation, or a uniform one of that half width.
  const bool normal = name == "HalfCheetah-v5";
  EXPECT_NEAR(std::sqrt(squares), normal ? scale : scale / std::sqrt(3.0), 0.15 * scale);
  if (!normal) EXPECT_LE(largest, scale);
}

}  // namespace
}  // namespace cohort::tasks
