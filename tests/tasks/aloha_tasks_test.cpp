// gym-aloha's tasks beside gym-aloha itself (make_aloha_fixtures.py), and their experts.
#include "tasks/aloha/aloha_tasks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/config.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

namespace fs = std::filesystem;
using config::Json;

constexpr const char* kNames[] = {"AlohaTransferCube-v0", "AlohaInsertion-v0"};

std::string missing() {
  return message_of([] { aloha_model("bimanual_viperx_insertion.xml"); });
}
#define COHORT_NEED_ALOHA() \
  if (!missing().empty()) GTEST_SKIP() << missing()

TEST(Aloha, StatesObservationsAndRewardsAreGymAlohas) {
  COHORT_NEED_ALOHA();
  constexpr double kFree = 1e-9;     // until something is touched the same engine does the same
  constexpr double kTouched = 1e-3;  // m and rad: contacts magnify the last bits
  constexpr int kKept = 20;          // steps between two states
  const Json all = parse_json<Json>(read_file(fs::path(COHORT_SOURCE_DIR) / "tests/tasks/fixtures/aloha.json"));
  for (const char* name : kNames) {
    const Json& entry = all.at(name);
    TaskSettings settings{.n_envs = 1};
    settings.engine = "mujoco";
    settings.overrides = {"end_on_success=false"};
    const auto made = make_task(name, settings);
    auto& task = dynamic_cast<SceneTask&>(*made);
    const std::int32_t envs[] = {0};
    const std::uint64_t seeds[] = {0};
    task.reset(envs, seeds);
    const auto start = entry.at("start").get<std::vector<double>>();
    const ArrayView view = task.scene().view(sim::Field::kQpos);
    std::copy(start.begin(), start.end(), static_cast<double*>(view.data) + 16);
    task.scene().forward();
    task.read_state();
    const auto rewards = entry.at("rewards").get<std::vector<int>>();
    int differing = 0, step = 0;
    // Behind success the hands press the things on, which tells two versions of MuJoCo apart.
    const auto reached = std::find(rewards.begin(), rewards.end(), 4) - rewards.begin();
    for (const Json& row : entry.at("actions")) {
      auto action = row.get<std::vector<float>>();
      task.step(make_view(action.data(), {1, 14}));
      const auto s = static_cast<std::size_t>(step);
      if (step <= reached) differing += task.reward().span<float>()[0] != static_cast<float>(rewards[s]);
      EXPECT_EQ(task.success().span<std::uint8_t>()[0] != 0, task.reward().span<float>()[0] == 4.0f);
      if (++step % kKept != 0 || step > reached) continue;
      const std::size_t kept = static_cast<std::size_t>(step / kKept - 1);
      const double tolerance = rewards[s] == 0 && step <= 60 ? kFree : kTouched;
      const auto qpos = entry.at("qpos").at(kept).get<std::vector<double>>();
      const EnvState now = task.state(0);
      ASSERT_EQ(now.qpos.size(), qpos.size());
      for (std::size_t i = 0; i < qpos.size(); ++i)
        EXPECT_NEAR(now.qpos[i], qpos[i], tolerance) << name << " qpos " << i << " after " << step << " steps";
      const auto pos = entry.at("agent_pos").at(kept).get<std::vector<double>>();
      for (std::size_t i = 0; i < pos.size(); ++i)
        EXPECT_NEAR(task.observation(0).span<float>()[i], pos[i], 0.03) << name << " agent_pos " << i;
    }
    EXPECT_LE(differing, 3) << name << ": a touch may begin a step earlier or later";
    EXPECT_EQ(*std::max_element(rewards.begin(), rewards.end()), 4);
  }
}

TEST(Aloha, TheExpertsSucceedFromEveryStart) {
  COHORT_NEED_ALOHA();
  for (const char* name : kNames) {
    const auto task = make_task(name, {.n_envs = 2, .threads = 2});
    const auto expert = task->make_expert(0);
    const auto episodes = run_episodes(*task, *expert, consecutive_seeds(100, 6));
    EXPECT_EQ(episodes.size(), 6u);
    for (const EpisodeOutcome& e : episodes) EXPECT_TRUE(e.success) << name << " seed " << e.seed;
  }
}

TEST(Aloha, ModelsThatAreNotThereAreSaidWithWhatBringsThem) {
  const char* before = std::getenv("COHORT_GYM_ALOHA_ASSETS");
  const std::string kept = before ? before : "";
  ::setenv("COHORT_GYM_ALOHA_ASSETS", "/nowhere", 1);
  const std::string said = missing();
  before ? ::setenv("COHORT_GYM_ALOHA_ASSETS", kept.c_str(), 1) : ::unsetenv("COHORT_GYM_ALOHA_ASSETS");
  EXPECT_NE(said.find("/nowhere/bimanual_viperx_insertion.xml: gym-aloha's models are not there: `scripts/setup`"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace cohort::tasks
