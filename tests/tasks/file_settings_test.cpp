// What a task's file adds to itself: settings, another file, an expert, and the tasks that come as files.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "support/process.h"
#include "tasks/actor.h"
#include "tasks/file/library_files.h"
#include "tasks/file/task_content.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

class FileSettings : public ::testing::Test {
 protected:
  FileSettings() { write("cartpole.xml", std::string(library_text("library:/cartpole.xml"))); }
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::string pole(const std::string& more) { return write("pole.yaml", std::string(kPole) + more); }
  static std::string trouble(const std::string& file, std::vector<std::string> words = {}) {
    return message_of([&] { make_task(file, {.overrides = words}); });
  }
  static double first_reward(const std::string& file, const std::vector<std::string>& words) {
    const auto task = make_task(file, {.overrides = words});
    task->reset(std::vector<std::int32_t>{0}, std::vector<std::uint64_t>{3});
    float action = 0.5f;
    task->step(make_view(&action, {1, 1}));
    return static_cast<double>(task->reward().span<float>()[0]);
  }

  static constexpr const char* kPole = R"(
scene: {robot: {mjcf: cartpole.xml}}
simulation: {control_period: 0.02, episode_length_s: 2}
actions: {force: {type: joint_effort, joints: slider}}
observations: {policy: {joint_pos: {}}}
)";
  testing::TemporaryFolder folder_;
};

constexpr const char* kSettings = R"(
rewards: {pay: {formula: amount, per_second: false}}
settings:
  amount: {default: 2, summary: of what is paid}
  twice: {default: false, when: {true: {rewards: {more: {formula: amount, per_second: false}}}}}
  style: {default: plain, when: {fancy: {rewards: {pay: {weight: 10}}}}}
)";

TEST_F(FileSettings, ChangeTheFileAndAreNamedInFormulas) {
  const std::string file = pole(kSettings);
  EXPECT_FLOAT_EQ(static_cast<float>(first_reward(file, {})), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(first_reward(file, {"amount=3"})), 3);
  EXPECT_FLOAT_EQ(static_cast<float>(first_reward(file, {"twice=true"})), 4);
  EXPECT_FLOAT_EQ(static_cast<float>(first_reward(file, {"twice=true", "style=fancy", "amount=0.5"})), 5.5f);
}

TEST_F(FileSettings, WhatDoesNotFitIsRefusedByName) {
  const std::string file = pole(kSettings);
  EXPECT_NE(trouble(file, {"style=grand"}).find("plain"), std::string::npos) << trouble(file, {"style=grand"});
  EXPECT_NE(trouble(file, {"amont=3"}).find("did you mean 'amount'"), std::string::npos) << trouble(file, {"amont=3"});
  const std::string both =
      pole("rewards: {pay: {formula: \"1\"}}\nsettings: {a: {default: [1]}, b: {default: true, when: {maybe: {}}}}");
  EXPECT_NE(trouble(both).find("settings.a.default = [1] is needed"), std::string::npos) << trouble(both);
  EXPECT_NE(trouble(both).find("is none of true and false"), std::string::npos) << trouble(both);
  const std::string taken = pole("rewards: {pay: {formula: \"1\"}}\nsettings: {horizon: {default: 3}}");
  EXPECT_NE(trouble(taken).find("every task has a setting of that name"), std::string::npos) << trouble(taken);
}

TEST_F(FileSettings, AFileStandsOnAnother) {
  pole("rewards: {pay: {formula: \"1\", per_second: false}}\n");
  const std::string other = write("other.yaml", "include: pole.yaml\nrewards: {pay: {weight: 7}}\n");
  EXPECT_FLOAT_EQ(static_cast<float>(first_reward(other, {})), 7);
  std::filesystem::create_directory(folder_.path() / "below");
  const std::string below = write("below/far.yaml", "include: ../pole.yaml\nrewards: {pay: {weight: 3}}\n");
  EXPECT_FLOAT_EQ(static_cast<float>(first_reward(below, {})), 3) << "its model lies beside the included file";
}

TEST_F(FileSettings, TheProgramsOwnTasksAndModelsCanBeIncludedAndChanged) {
  const std::string own =
      write("own.yaml", "include: library:/cartpole-balance.yaml\nrewards: {upright: {weight: 3}}\n");
  const double before = first_reward("cartpole-balance", {});
  EXPECT_GT(before, 0);
  EXPECT_NEAR(first_reward(own, {}), 3 * before, 1e-5);
  // The return that ends a training is that of the rewards as they were.
  const auto ends_at = [&](const std::string& file) {
    return read_content(file).at("ppo").value("stop_at_return", 0.0);
  };
  EXPECT_EQ(ends_at("library:/cartpole-balance.yaml"), 497);
  EXPECT_EQ(ends_at(own), 0);
  EXPECT_EQ(ends_at("library:/cartpole-swingup.yaml"), 417) << "its own";
  const std::string model = write(
      "model.yaml", std::string(kPole).replace(std::string(kPole).find("cartpole.xml"), 12, "library:/cartpole.xml"));
  EXPECT_NO_THROW(make_task(model, {}));
  const std::string none = write("none_there.yaml", "include: library:/nowhere.yaml\n");
  EXPECT_NE(trouble(none).find("include: there is no file 'library:/nowhere.yaml'"), std::string::npos)
      << trouble(none);
}

TEST_F(FileSettings, FilesThatIncludeEachOtherOrNothingAreNamed) {
  const std::string one = write("one.yaml", "include: two.yaml\n");
  write("two.yaml", "include: one.yaml\n");
  EXPECT_NE(trouble(one).find("is included by what it includes: a circle"), std::string::npos) << trouble(one);
  const std::string none = write("none.yaml", "include: nowhere.yaml\n");
  EXPECT_NE(trouble(none).find("include: there is no file '"), std::string::npos) << trouble(none);
}

TEST_F(FileSettings, AnExpertIsAFormulaOfTheStateWithinTheActionsBounds) {
  const std::string file = pole("rewards: {pay: {formula: \"1\"}}\nexpert: 100 * joint_pos(\"slider\")\n");
  const auto task = make_task(file, {.n_envs = 20});
  ASSERT_TRUE(task->spec().has_expert);
  std::vector<std::int32_t> envs;
  std::vector<std::uint64_t> seeds;
  for (int env = 0; env < 20; ++env) envs.push_back(env), seeds.push_back(static_cast<std::uint64_t>(env));
  task->reset(envs, seeds);
  const std::vector<float> actions(20, 1);
  task->step(make_view(const_cast<float*>(actions.data()), {20, 1}));
  std::vector<float> chosen(20, -9);
  task->make_expert(1)->act(*task, std::vector<std::int32_t>{3, 19}, make_view(chosen.data(), {20, 1}));
  const auto pos = task->observation(0).span<float>();
  for (std::size_t env = 0; env < 20; ++env)
    EXPECT_FLOAT_EQ(chosen[env], env == 3 || env == 19 ? std::min(1.0f, 100 * pos[2 * env]) : -9);
  EXPECT_NE(
      trouble(pole("rewards: {pay: {formula: \"1\"}}\nexpert: previous(joint_pos(\"slider\"))\n")).find("remembers"),
      std::string::npos);
  EXPECT_NE(
      trouble(pole("rewards: {pay: {formula: \"1\"}}\nexpert: joint_pos\n")).find("has 2 numbers, and an action 1"),
      std::string::npos);
}

TEST_F(FileSettings, APlacedRobotStandsOnItsPoints) {
  write("quadruped.xml", std::string(library_text("library:/quadruped.xml")));
  const std::string dog = write("dog.yaml", R"yaml(
scene: {robot: {mjcf: quadruped.xml, joint_pos: {".*_hip": 0.8, ".*_knee": -1.5}}}
actions: {legs: {type: joint_position}}
observations:
  policy: {feet: {formula: "flat(link_position(\".*_shin\") + rotate(link_quaternion(\".*_shin\"), [0, 0, -0.2]))"}}
rewards: {pay: {formula: "1"}}
events:
  joints: {type: reset_joints_by_offset, position_range: [-0.3, 0.3]}
  stand: {type: place_on_ground, links: ".*_shin", point: [0, 0, -0.2], clearance: 0.1}
)yaml");
  const auto task = make_task(dog, {.n_envs = 2});
  task->reset(std::vector<std::int32_t>{0, 1}, std::vector<std::uint64_t>{5, 6});
  const auto feet = task->observation(0).span<float>();
  for (std::size_t env = 0; env < 2; ++env)
    EXPECT_NEAR(std::min({feet[12 * env + 2], feet[12 * env + 5], feet[12 * env + 8], feet[12 * env + 11]}), 0.1f,
                1e-5f);
}

}  // namespace
}  // namespace cohort::tasks
