// What is wrong with a folder of LIBERO's is said by name, before anything runs.
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/json_text.h"
#include "tasks/libero/catalogue.h"
#include "tasks/libero/libero_task.h"
#include "tasks/libero/simulation.h"
#include "tasks/libero_data.h"
#include "tasks/registry.h"

namespace cohort::tasks::libero {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A copy of a recorded folder, with links to the assets, that a test may change.
class LiberoInput : public testing::Test {
 protected:
  void SetUp() override {
    COHORT_NEED_LIBERO_DATA();
    root_ = fs::path(testing::TempDir()) / ("libero_input_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "assets");
    fs::create_directories(root_ / "task");
    for (const char* file : {"task.json", "scene.xml", "init_states.npy"})
      write_file_atomically(root_ / "task" / file, read_file(test::libero_data() / "scene10_close_top_drawer" / file));
    for (const auto& entry : fs::directory_iterator(test::libero_data() / "assets"))
      fs::create_symlink(entry.path(), root_ / "assets" / entry.path().filename());
  }
  void TearDown() override {
    ::unsetenv("COHORT_LIBERO");
    if (!root_.empty()) fs::remove_all(root_);
  }
  fs::path folder() const { return root_ / "task"; }
  Json task() const { return parse_json<Json>(read_file(folder() / "task.json")); }
  void set_task(const Json& json) { write_file_atomically(folder() / "task.json", json_text(json)); }
  /// What making the task says.
  std::string refused(const TaskSettings& settings = {}) {
    try {
      make_libero_task(folder(), settings);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  void expect_refused(const std::string& part) {
    const std::string text = refused();
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  fs::path root_;
};

TEST_F(LiberoInput, AnUnknownPredicateIsNamedWithTheNearest) {
  Json json = task();
  json["goal_predicates"][0]["predicate"] = {"closed", "wooden_cabinet_1_top_region"};
  set_task(json);
  expect_refused("there is no predicate `closed`, is `close` meant?; there are on, in, open, close");
}

TEST_F(LiberoInput, AnUnknownObjectIsNamedWithTheNearest) {
  Json json = task();
  json["goal_predicates"][0]["predicate"] = {"in", "akita_black_bowl_2", "wooden_cabinet_1_top_region"};
  set_task(json);
  expect_refused("the scene has no object `akita_black_bowl_2`, is `akita_black_bowl_1` meant?");
}

TEST_F(LiberoInput, APredicateWithTooFewArgumentsOrOfTheWrongThingIsRefused) {
  Json json = task();
  json["goal_predicates"][0]["predicate"] = {"in", "akita_black_bowl_1"};
  set_task(json);
  expect_refused("in takes 2 arguments");
  json["goal_predicates"][0]["predicate"] = {"turnon", "wooden_cabinet_1_top_region"};
  set_task(json);
  expect_refused("LIBERO does not say when a wooden_cabinet is that");
  json["goal_predicates"][0]["predicate"] = {"in", "butter_1", "butter_2"};
  set_task(json);
  expect_refused("only a region can hold something");
}

TEST_F(LiberoInput, MissingAssetsAreNamedWithWhereTheyComeFrom) {
  fs::remove(root_ / "assets" / "akita_black_bowl_texture.png");
  const std::string text = refused();
  EXPECT_NE(text.find("1 of its meshes and textures are not in"), std::string::npos) << text;
  EXPECT_NE(text.find("akita_black_bowl_texture.png (from stable_scanned_objects/akita_black_bowl/texture.png of "
                      "LIBERO)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("`cohort export-libero`"), std::string::npos) << text;
}

TEST_F(LiberoInput, ACameraThatTheSceneLacksIsNamedWithTheNearest) {
  Json json = task();
  json["cameras_observed"] = {"agentveiw"};
  set_task(json);
  expect_refused("cameras_observed names `agentveiw`, which the scene lacks: is `agentview` meant?");
  json["cameras_observed"] = {"agentview"};
  set_task(json);
  const auto made = make_libero_task(folder(), {});
  const std::int32_t envs[] = {0};
  try {
    made->picture("agentvue", envs);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("has no camera 'agentvue', did you mean 'agentview'?"), std::string::npos)
        << e.what();
  }
}

TEST_F(LiberoInput, AFileThatIsMissingCutOffOrOfAnotherShapeIsNamed) {
  const std::string states = read_file(folder() / "init_states.npy");
  write_file_atomically(folder() / "init_states.npy", states.substr(0, states.size() - 8));
  expect_refused("init_states.npy has 6152 bytes of numbers, not 6160");
  write_file_atomically(folder() / "init_states.npy", "no array, but a text");
  expect_refused("init_states.npy is no .npy file");
  write_file_atomically(folder() / "init_states.npy",
                        read_file(test::libero_data() / "scene3_turn_on_stove" / "init_states.npy"));
  expect_refused("its initial states have 47 numbers, and the scene's states 77");
  fs::remove(folder() / "init_states.npy");
  expect_refused("it has no init_states.npy");
  Json json = task();
  json.erase("controller");
  set_task(json);
  write_file_atomically(folder() / "init_states.npy", states);
  expect_refused("task.json");
  expect_refused("controller");
  write_file_atomically(folder() / "task.json", "{");
  expect_refused("task.json: ");
}

TEST_F(LiberoInput, SettingsAreChecked) {
  TaskSettings settings;
  settings.overrides = {"horizon=999"};
  EXPECT_NE(refused(settings).find("LIBERO's environment ends after 1000 steps"), std::string::npos);
  settings.overrides = {"strat=given"};
  EXPECT_NE(refused(settings).find("start"), std::string::npos);
  settings.overrides = {"protocol=openvla"};
  EXPECT_NE(refused(settings).find("lerobot"), std::string::npos);
  EXPECT_NE(refused({.engine = "genesis"}).find("batched or mujoco"), std::string::npos);
}

TEST_F(LiberoInput, SuitesAndTheirFolderAreNamed) {
  const auto said = [](const std::string& suite) -> std::string {
    try {
      libero_suite(suite);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(said("libero_9").find("there is no benchmark 'libero_9', did you mean 'libero_90'?"), std::string::npos)
      << said("libero_9");
  ::unsetenv("COHORT_LIBERO");
  EXPECT_NE(said("libero_90").find("--libero DIR or the environment variable COHORT_LIBERO"), std::string::npos)
      << said("libero_90");
  ::setenv("COHORT_LIBERO", (root_ / "nowhere").c_str(), 1);
  EXPECT_NE(said("libero_90").find("is no folder"), std::string::npos) << said("libero_90");
  ::setenv("COHORT_LIBERO", root_.c_str(), 1);
  EXPECT_NE(said("libero_goal").find("has no task of libero_goal; there are 1 of libero_90"), std::string::npos)
      << said("libero_goal");
  const LiberoSuite suite = libero_suite("libero_90");
  ASSERT_EQ(suite.tasks.size(), 1u);
  EXPECT_EQ(suite.expected, 90);
  EXPECT_EQ(suite.tasks[0].language, "close the top drawer of the cabinet");
  fs::copy(folder(), root_ / "again", fs::copy_options::recursive);
  EXPECT_NE(said("libero_90").find("are both KITCHEN_SCENE10_close_the_top_drawer"), std::string::npos);
  ::setenv("COHORT_LIBERO", (root_ / "assets").c_str(), 1);
  EXPECT_NE(said("libero_90").find("holds no LIBERO tasks"), std::string::npos);
}

// The registry is filled once in a process: a task of LIBERO's is asked for in one that knows no folder.
TEST(LiberoRegistry, ATaskOfLiberosWithoutAFolderSaysWhatToSet) {
  ::unsetenv("COHORT_LIBERO");
  try {
    make_task("KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet", {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("COHORT_LIBERO"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace cohort::tasks::libero
