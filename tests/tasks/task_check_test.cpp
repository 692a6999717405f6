// `cohort tasks NAME --check`: our own tasks pass, and each mistake that a task of one's own can hold is named.
#include "tasks/task_check.h"

#include <cmath>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

std::string text_of(const std::vector<CheckRow>& rows) {
  std::string text;
  for (const CheckRow& row : rows)
    text += format("{} {}: {}\n", row.outcome == CheckRow::Outcome::kFail ? "FAIL" : "ok", row.name, row.found);
  return text;
}

std::vector<std::string> failures(const std::vector<CheckRow>& rows) {
  std::vector<std::string> names;
  for (const CheckRow& row : rows) {
    if (row.outcome != CheckRow::Outcome::kFail) continue;
    names.push_back(row.name);
    EXPECT_FALSE(row.remedy.empty()) << row.name;
  }
  return names;
}

class BuiltInTask : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, BuiltInTask,
                         ::testing::Values("cartpole-balance", "cartpole-swingup", "open-drawer", "peg-in-hole",
                                           "pick-and-place", "push", "reach", "stack", "quadruped-velocity"),
                         [](const auto& of) {
                           std::string name = of.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST_P(BuiltInTask, PassesItsCheck) {
  const auto rows =
      check_task([](int n) { return make_task(GetParam(), {.n_envs = n}); }, {.steps = 40, .episodes = 4});
  EXPECT_EQ(failures(rows), std::vector<std::string>()) << text_of(rows);
  EXPECT_EQ(rows.size(), 9u);
}

constexpr const char* kPoint = R"(
<mujoco><option timestep="0.01"/><worldbody><body><joint name="x" type="slide" axis="1 0 0" damping="1"/>
<geom size="0.1" mass="1"/></body></worldbody>
<actuator><motor joint="x" ctrlrange="-1 1"/></actuator></mujoco>)";

/// A point on a rail that is to come near 1, with one mistake.
class Flawed final : public SceneTask {
 public:
  static std::unique_ptr<Task> make(const std::string& mistake, int n, std::vector<std::string> overrides = {}) {
    return std::make_unique<Flawed>(TaskSettings{.n_envs = n, .overrides = std::move(overrides)}, mistake);
  }
  Flawed(const TaskSettings& settings, std::string mistake)
      : SceneTask(settings, setup(settings, mistake)), mistake_(std::move(mistake)) {}

 private:
  static SceneTaskSetup setup(const TaskSettings& settings, const std::string& mistake) {
    SceneTaskSettings own;
    own.horizon = 200;
    SceneTaskSetup setup = read_settings(settings, own);
    setup.spec.name = "flawed";
    setup.spec.observations = {{"x", {2}, "m", ""}, {"v", {1}, "m/s", ""}};
    setup.spec.action = {.names = {"force"}, .low = {-1}, .high = {1}, .unit = "N"};
    if (mistake == "bounds") setup.spec.action.low = {1};
    setup.spec.control_period = 0.02;
    setup.spec.reward_terms = {"near", "calm", "small"};
    setup.spec.has_expert = true;
    setup.mjcf = kPoint;
    return setup;
  }
  void start(int, const RandomStream& random, Start& start) override {
    start.qpos[0] = 0.2 * static_cast<double>(random.uniform(0));
    if (mistake_ == "start") start.qpos[1] = 1;
    if (mistake_ == "unseeded") start.qpos[0] += 1e-3 * ++begun_;
  }
  void after_start(std::span<const std::int32_t> envs) override {
    // The call for randomisation that simulate.md shows: its draw counts over episodes.
    if (mistake_ == "randomize")
      scene().randomize_parameter(sim::Parameter::kLinkMass, 0.7, 1.3,
                                  std::vector<std::int32_t>(envs.begin(), envs.end()),
                                  static_cast<std::uint32_t>(++begun_));
  }
  void control(int, const EnvState&, std::span<const float> action, std::span<double> ctrl) override {
    ctrl[0] = static_cast<double>(action[0]);
    if (mistake_ == "ctrl") ctrl[1] = 0;
  }
  void observe(int env, const EnvState& now, ObservationRows& out) override {
    if (mistake_ == "width") return out.put(0, {now.qpos[0]});
    if (mistake_ == "field") out.put(2, {0});
    if (mistake_ == "index") out[1][1] = 3;
    if (mistake_ == "span") {
      const std::span<float> row = out[1];
      *(row.data() + 1) = 3;
    }
    out[0][0] = static_cast<float>(now.qpos[0]);
    if (mistake_ != "unwritten") out[0][1] = 1;
    out[1][0] = static_cast<float>(now.qvel[0]) + (mistake_ == "env" ? static_cast<float>(env) : 0.0f);
    if (mistake_ == "nan" && now.step > 5) out[1][0] = std::nanf("");
  }
  Judgement judge(int, const EnvState& now, Terms& terms) override {
    const double missing = std::abs(1 - now.qpos[0]);
    if (mistake_ == "sparse" || !terms.empty()) {
      terms[0] = static_cast<float>(mistake_ == "hover" ? 1 - missing : -missing);
      if (mistake_ == "terms") terms[3] = 1;
      if (mistake_ == "infinite") terms[1] = INFINITY;
    }
    return {.success = missing < 0.05};
  }
  void visit_variables(StateVisitor&) override {}
  void expert(int, const EnvState& now, std::span<float> action) override {
    action[0] = static_cast<float>(std::clamp(8 * (1 - now.qpos[0]) - 4 * now.qvel[0], -1.0, 1.0));
  }
  std::string mistake_;
  int begun_ = 0;
};

TEST(TaskCheck, NamesEachMistakeAndWhereItIs) {
  const struct {
    const char *mistake, *check, *text;
  } cases[] = {
      {"", "", ""},
      {"width", "writes", "observe() puts 1 numbers into 'x' (field 0), which has 2"},
      {"field", "writes", "observe() writes field 2: the spec has 2 observations"},
      {"index", "writes", "observe() writes beyond the 1 numbers of 'v' (field 1)"},
      {"span", "writes", "observe() writes beyond the 1 numbers of 'v' (field 1)"},
      {"terms", "writes", "judge() writes beyond the 3 terms of the reward (near, calm, small)"},
      {"ctrl", "writes", "control() writes beyond the model's 1 controls"},
      {"start", "writes", "start() writes beyond the 1 numbers of start.qpos"},
      {"unwritten", "observations", "'x' [1] is not written after a reset"},
      {"nan", "observations", "'v' [0] is nan in step 6"},
      {"infinite", "rewards", "the reward is inf"},
      {"bounds", "spec", "the bounds of 'force' are 1 and 1"},
      {"unseeded", "replay", "'x' [0] in step 0"},
      {"randomize", "replay", "differs: 'x' [0] in step"},
      {"env", "replay", "seed 20 in environment 2 is not what it was in 1"},
      {"hover", "success", "a learner hovers there"},
  };
  for (const auto& one : cases) {
    const auto rows = check_task([&](int n) { return Flawed::make(one.mistake, n); }, {.steps = 30, .episodes = 4});
    const std::vector<std::string> failed = failures(rows);
    const std::string text = text_of(rows);
    if (*one.mistake == '\0') {
      EXPECT_TRUE(failed.empty()) << text;
      continue;
    }
    ASSERT_FALSE(failed.empty()) << one.mistake;
    EXPECT_EQ(failed.front(), one.check) << one.mistake << "\n" << text;
    EXPECT_NE(text.find(one.text), std::string::npos) << one.mistake << "\n" << text;
  }
}

TEST(TaskCheck, WhatAnEpisodeInheritsFromOthersIsNoPartOfARunThatGoesOn) {
  const auto rows = check_task([](int n) { return Flawed::make("randomize", n); }, {.steps = 30, .episodes = 4});
  const std::vector<std::string> failed = failures(rows);
  EXPECT_EQ(failed, (std::vector<std::string>{"replay", "resume"})) << text_of(rows);
}

TEST(TaskCheck, HoveringIsNoTemptationWhereEpisodesGoOn) {
  const auto rows = check_task([](int n) { return Flawed::make("hover", n, {"end_on_success=false"}); },
                               {.steps = 30, .episodes = 4});
  EXPECT_EQ(failures(rows), std::vector<std::string>()) << text_of(rows);
}

TEST(SceneTask, AWriteBeyondAFieldOrATermIsAnErrorOfTheStepThatNamesIt) {
  const auto said = [](const std::string& mistake, std::vector<std::string> overrides = {}) {
    return message_of([&] {
      const auto task = Flawed::make(mistake, 3, std::move(overrides));
      const std::vector<std::int32_t> all{0, 1, 2};
      task->reset(all, std::vector<std::uint64_t>{1, 2, 3});
      std::vector<float> actions(3);
      task->step(make_view(actions.data(), {3, 1}));
    });
  };
  EXPECT_NE(said("width").find("the task flawed: observe() puts 1 numbers into 'x'"), std::string::npos);
  EXPECT_NE(said("index").find("observe() writes beyond the 1 numbers of 'v'"), std::string::npos);
  EXPECT_NE(said("terms").find("the task flawed: judge() writes beyond the 3 terms"), std::string::npos);
  EXPECT_NE(said("sparse", {"reward=sparse"}).find("judge() writes terms with reward=sparse"), std::string::npos);
  EXPECT_EQ(said("sparse"), "");
}

}  // namespace
}  // namespace cohort::tasks
