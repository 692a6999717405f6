// `cohort tasks` as a program.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "support/command.h"

namespace cohort {
namespace {

test::CommandOutcome tasks(const std::string& arguments) {
  return test::run_command(std::string(std::getenv("COHORT_BIN")) + "/cohort tasks " + arguments);
}

TEST(TasksCommand, ListsTheSuite) {
  const test::CommandOutcome listed = tasks("");
  EXPECT_EQ(listed.code, 0) << listed.output;
  for (const char* name : {"cartpole-balance", "cartpole-swingup", "open-drawer", "peg-in-hole", "pick-and-place",
                           "push", "reach", "stack"})
    EXPECT_NE(("\n" + listed.output).find(std::string("\n") + name + " "), std::string::npos) << name << "\n"
                                                                                              << listed.output;
}

TEST(TasksCommand, ATaskIsNamedAlikeInEveryCommand) {
  const std::string cohort = std::string(std::getenv("COHORT_BIN")) + "/cohort ";
  const std::string shown = tasks("push").output;
  for (const char* form : {"--task push", "task=push"}) EXPECT_EQ(tasks(form).output, shown) << form;
  for (const char* command : {"collect", "evaluate --policy random", "view", "view --policy random"}) {
    for (const char* form : {"push", "--task push", "task=push", "push horizon=20", "task=push horizon=20"}) {
      const test::CommandOutcome named =
          test::run_command("COHORT_ONLY_CHECK_WORDS=1 " + cohort + command + " " + form);
      EXPECT_EQ(named.code, 0) << command << " " << form << "\n" << named.output;
    }
  }
  for (const char* command : {"collect", "evaluate --policy=random", "tasks"}) {
    const test::CommandOutcome twice = test::run_command(cohort + command + " reach --task push");
    EXPECT_NE(twice.code, 0) << command;
    EXPECT_NE(twice.output.find("two tasks are named: push and reach"), std::string::npos) << command << twice.output;
  }
  const test::CommandOutcome folder = test::run_command("COHORT_ONLY_CHECK_WORDS=1 " + cohort + "evaluate push .");
  EXPECT_EQ(folder.code, 0) << "a folder is a policy: " << folder.output;
  for (const char* command :
       {"evaluate outputs/nothing --task push", "evaluate outputs/nothing", "view outputs/nothing"}) {
    const test::CommandOutcome lost = test::run_command(cohort + command);
    EXPECT_NE(lost.output.find("outputs/nothing: there is no such file or folder"), std::string::npos)
        << command << "\n"
        << lost.output;
  }
  const test::CommandOutcome none = test::run_command(cohort + "collect --episodes 3");
  EXPECT_NE(none.output.find("episodes of which task? `cohort collect pick-and-place`"), std::string::npos)
      << none.output;
}

TEST(TasksCommand, ShowsSpacesCamerasHorizonExpertAndSettings) {
  const test::CommandOutcome shown = tasks("pick-and-place horizon=70 reward=sparse");
  EXPECT_EQ(shown.code, 0) << shown.output;
  for (const char* text : {"at most 70 steps", "eef_pos", "cube_to_eef", "front, wrist", "the sum of success",
                           "sets it down and leaves", "end_on_success", "goal"})
    EXPECT_NE(shown.output.find(text), std::string::npos) << text << "\n" << shown.output;
}

TEST(TasksCommand, TheExpertsSuccessIsTriedOut) {
  const test::CommandOutcome tried = tasks("reach --episodes 20");
  EXPECT_EQ(tried.code, 0) << tried.output;
  EXPECT_NE(tried.output.find("solves 20 of 20 seeds"), std::string::npos) << tried.output;
}

TEST(TasksCommand, AnUnknownTaskOrSettingIsAnErrorThatNamesTheNearest) {
  const test::CommandOutcome task = tasks("pick-and-plase");
  EXPECT_EQ(task.code, 1);
  EXPECT_NE(task.output.find("did you mean 'pick-and-place'"), std::string::npos) << task.output;
  const test::CommandOutcome setting = tasks("push horison=3");
  EXPECT_EQ(setting.code, 1);
  EXPECT_NE(setting.output.find("horizon"), std::string::npos) << setting.output;
  const test::CommandOutcome value = tasks("push horizon=0");
  EXPECT_EQ(value.code, 1);
  EXPECT_NE(value.output.find("at least 1 control step"), std::string::npos) << value.output;
}

TEST(TasksCommand, ACheckSaysWhatATaskKeepsAndItsCodeWhetherItDoes) {
  const test::CommandOutcome good = tasks("reach --check");
  EXPECT_EQ(good.code, 0) << good.output;
  for (const char* text : {"writes        pass", "replay        pass", "success       pass", "reach passes"})
    EXPECT_NE(good.output.find(text), std::string::npos) << text << "\n" << good.output;
  const test::CommandOutcome unknown = tasks("reech --check");
  EXPECT_EQ(unknown.code, 1) << unknown.output;
  EXPECT_NE(unknown.output.find("did you mean 'reach'"), std::string::npos) << unknown.output;
  EXPECT_EQ(tasks("--check").code, 2);
}

TEST(TasksCommand, ATaskOfAnotherLibraryIsThereToo) {
  const std::string with = "COHORT_TASKS=" COHORT_BINARY_DIR "/examples/my_task.so ";
  const std::string command = with + std::getenv("COHORT_BIN") + "/cohort tasks ";
  const test::CommandOutcome listed = test::run_command(command);
  EXPECT_EQ(listed.code, 0) << listed.output;
  EXPECT_NE(listed.output.find("ball-on-tray"), std::string::npos) << listed.output;
  EXPECT_NE(listed.output.find("my_task.so"), std::string::npos) << listed.output;
  const test::CommandOutcome checked = test::run_command(command + "ball-on-tray --check");
  EXPECT_EQ(checked.code, 0) << checked.output;
  const test::CommandOutcome shown = test::run_command(command + "ball-on-tray largest_tilt=0.1");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_NE(shown.output.find("\"largest_tilt\":0.1"), std::string::npos) << shown.output;
  const test::CommandOutcome none = test::run_command("COHORT_TASKS=/nowhere/tasks.so " + command.substr(with.size()));
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.output.find("COHORT_TASKS: cannot load /nowhere/tasks.so"), std::string::npos) << none.output;
}

TEST(ExportLiberoCommand, WhatIsMissingOrWrongOnTheCommandLineIsSaid) {
  const auto exported = [](const std::string& arguments) {
    return test::run_command(std::string(std::getenv("COHORT_BIN")) + "/cohort export-libero " + arguments);
  };
  const test::CommandOutcome without = exported("--out scenes");
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.output.find("--libero names a checkout"), std::string::npos) << without.output;
  const test::CommandOutcome elsewhere = exported("--libero / --robosuite / --out scenes");
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_NE(elsewhere.output.find("/ is no checkout of LIBERO"), std::string::npos) << elsewhere.output;
  EXPECT_FALSE(std::filesystem::exists("scenes"));
}

TEST(TasksCommand, APictureOfAnEpisodeIsAPng) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("cohort_tasks_" + std::to_string(getpid()) + ".png");
  const test::CommandOutcome drawn = tasks("stack --picture " + file.string() + " --steps 5 --camera wrist");
  EXPECT_EQ(drawn.code, 0) << drawn.output;
  EXPECT_EQ(read_file(file).substr(1, 3), "PNG");
  std::filesystem::remove(file);
  const test::CommandOutcome camera = tasks("stack --camera rist --picture " + file.string());
  EXPECT_EQ(camera.code, 1);
  EXPECT_NE(camera.output.find("did you mean 'wrist'"), std::string::npos) << camera.output;
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace cohort
