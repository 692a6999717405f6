// LIBERO's tasks composed from its files: a small checkout that the test makes itself, and the real one where it is.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
#include <mujoco/mjxmacro.h>
#include <sys/resource.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "formats/npy.h"
#include "sim/host/compile.h"
#include "sim/host/import/handle.h"
#include "support/fresh_folder.h"
#include "tasks/libero/compose/export.h"
#include "tasks/libero/libero_task.h"
#include "tasks/libero/scene_folder.h"
#include "tasks/libero_checkout.h"
#include "tasks/libero_data.h"

namespace cohort::tasks::libero {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void no_report(int, int, const std::string&) {}

class LiberoCompose : public testing::Test {
 protected:
  compose::ExportSettings settings() const {
    return {.libero = checkout_.libero, .robosuite = checkout_.robosuite, .out = out(), .suites = {}, .tasks = {}};
  }
  fs::path out() const { return folder_ / "scenes"; }
  fs::path task_folder() const { return out() / (std::string("libero_object__") + test::LiberoCheckout::kTask); }
  void change(const fs::path& file, const std::string& from, const std::string& to) const {
    std::string text = read_file(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file_atomically(file, text.replace(at, from.size(), to));
  }
  /// What the export says, and that it leaves nothing.
  std::string refused(const compose::ExportSettings& settings) const {
    const std::string message = message_of([&] { compose::export_libero(settings, no_report); });
    for (const auto& entry : fs::directory_iterator(folder_))
      EXPECT_FALSE(entry.path().filename().string().starts_with("scenes")) << entry.path() << " is left";
    return message;
  }
  void expect_refused(const compose::ExportSettings& settings, const std::string& part) const {
    const std::string message = refused(settings);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  fs::path folder_ = test::fresh_folder("libero_compose");
  test::LiberoCheckout checkout_{folder_};
};

TEST_F(LiberoCompose, AFolderComesOutThatRuns) {
  compose::export_libero(settings(), no_report);
  const SceneFolder scene = read_scene_folder(task_folder());
  EXPECT_EQ(scene.suite, "libero_object");
  EXPECT_EQ(scene.language, "pick up the block and place it on the stove");
  EXPECT_EQ(scene.states, 3);
  EXPECT_EQ(scene.state_width, 34u);
  EXPECT_EQ(scene.goal.size(), 2u);
  EXPECT_EQ(scene.things.at("flat_stove_1").burner, "flat_stove_1_burner");
  EXPECT_EQ(scene.sites.at("flat_stove_1_cook_region").parent, "flat_stove_1");
  EXPECT_EQ(parse_json<Json>(read_file(out() / "suites.json")).at("libero_object").at(0), test::LiberoCheckout::kTask);
  const std::unique_ptr<Task> task = make_libero_task(task_folder(), {.n_envs = 2});
  const std::int32_t envs[] = {0, 1};
  const std::uint64_t seeds[] = {0, 1};
  task->reset(envs, seeds);
  std::vector<float> actions(2 * 7, 0.1f);
  task->step(make_view(actions.data(), {2, 7}));
}

TEST_F(LiberoCompose, FixturesStandWhereNumpyPutsThem) {
  // numpy.random.seed(0): randn(7), uniform() twice for (Turnoff ...), then x, y, angle of the block and of the stove.
  compose::export_libero(settings(), no_report);
  const Json stove = parse_json<Json>(read_file(task_folder() / "task.json")).at("fixtures").at("flat_stove_1");
  const auto pos = stove.at("pos").get<std::vector<double>>(), quat = stove.at("quat_wxyz").get<std::vector<double>>();
  constexpr double kRounding = 1e-15;
  EXPECT_EQ(pos.at(0), -0.1074403361707339);
  EXPECT_EQ(pos.at(1), -0.2928963941802113);
  EXPECT_NEAR(pos.at(2), -0.04, kRounding);
  EXPECT_NEAR(quat.at(0), 0.9572184700488883, kRounding);
  EXPECT_NEAR(quat.at(3), 0.28936620500201043, kRounding);
}

TEST_F(LiberoCompose, TheSceneHasRobosuitesNamesColoursAndAssets) {
  compose::export_libero(settings(), no_report);
  const std::string xml = read_file(task_folder() / "scene.xml");
  const auto has = [&](const std::string& part) {
    EXPECT_NE(xml.find(part), std::string::npos) << part << "\n" << xml;
  };
  has("name=\"block_1_g1\"");
  has("name=\"block_1_joint0\"");
  has("mesh=\"block_1_block_vis\"");
  // A class is written out, and does not take the place of what a geom says itself.
  has("friction=\"0.8 0.3 0.1\" group=\"0\" name=\"flat_stove_1_g0\" rgba=\"1 0 0 1\"");
  EXPECT_EQ(xml.find("class="), std::string::npos);
  has("name=\"floor_block_region\"");
  has("name=\"robot0_joint7\"");
  has("rgba=\"0 0.5 0 1\"");  // the arm's colliding geoms
  // Sites of things and of the gripper are not seen; a zone keeps its own alpha.
  has("name=\"flat_stove_1_burner\" pos=\"0 0 0.02\" rgba=\"1 0 0 0\"");
  // Floor and wall get LIBERO's textures, and each content is there once.
  has("file=\"light-gray-floor-tile.png\" name=\"texplane\"");
  has("file=\"block.obj\"");
  const Json manifest = parse_json<Json>(read_file(out() / "assets" / "manifest.json"));
  ASSERT_EQ(manifest.at("files").size(), 2u);  // both textures have the same bytes
  EXPECT_EQ(manifest.at("files").at(0).at("source"), "stable_hope_objects/block/block.obj");
  EXPECT_EQ(manifest.at("files").at(0).at("colliding"), false);
}

TEST_F(LiberoCompose, WrongFoldersAndNamesAreToldWithTheNearest) {
  compose::ExportSettings wrong = settings();
  wrong.libero = folder_;
  expect_refused(wrong, "is no checkout of LIBERO: there is no libero/libero/benchmark/libero_suite_task_map.py in it");
  wrong = settings(), wrong.robosuite = folder_;
  expect_refused(wrong, "holds no robosuite: there is no robosuite/models/assets/base.xml in it");
  wrong = settings(), wrong.robosuite = "robosuite-1.4.0-py3-none-any.whl";
  expect_refused(wrong, "unpack it (`unzip robosuite-1.4.0-py3-none-any.whl");
  const fs::path other = folder_ / "wheels" / "robosuite-1.4.1" / "robosuite";
  fs::create_directories(other / "models" / "assets");
  write_file_atomically(other / "models" / "assets" / "base.xml", "<mujoco/>");
  write_file_atomically(other / "__init__.py", "__version__ = \"1.4.1\"\n");
  wrong = settings(), wrong.robosuite = folder_ / "wheels";
  expect_refused(wrong, "is robosuite 1.4.1: LIBERO's scenes are of robosuite 1.4.0");
  wrong = settings(), wrong.suites = {"libero_objekt"};
  expect_refused(wrong, "there is no suite 'libero_objekt', did you mean 'libero_object'?");
  wrong = settings(), wrong.tasks = {"pick_up_the_blok_and_place_it_on_the_stove"};
  expect_refused(wrong,
                 "begins with 'pick_up_the_blok_and_place_it_on_the_stove', did you mean 'pick_up_the_block_and");
  change(checkout_.robosuite / "robosuite/__init__.py", "1.4.0", "1.5.2");
  expect_refused(settings(), "is robosuite 1.5.2: LIBERO's scenes are of robosuite 1.4.0");
}

TEST_F(LiberoCompose, WhatIsMissingInACheckoutIsNamedAndNothingIsLeft) {
  const fs::path assets = checkout_.package / "assets", mesh = assets / "stable_hope_objects/block/block.obj";
  const std::string whole = read_file(mesh);
  write_file_atomically(mesh, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  expect_refused(settings(),
                 "in the checkout (without Git LFS: copy or download it). LIBERO's assets are not complete");
  fs::remove(mesh);
  expect_refused(settings(), "block.obj is missing: LIBERO's assets are not complete");
  write_file_atomically(mesh, whole.substr(0, 20));
  expect_refused(settings(), test::LiberoCheckout::kTask);
  write_file_atomically(mesh, whole);
  change(checkout_.problem_file(), "block_1 - block", "block_1 - blok");
  expect_refused(settings(), "there is no model blok.xml");
  expect_refused(settings(), "is `block` meant?");
  change(checkout_.problem_file(), "LIBERO_Floor_", "LIBERO_Coffee_Table_");
  expect_refused(settings(), "problem class libero_coffee_table_manipulation are not composed here");
  fs::remove(checkout_.problem_file());
  expect_refused(settings(), ".bddl");
}

TEST_F(LiberoCompose, AWriteThatFailsHalfWayLeavesNothing) {
  // As a full disk does: files of more than 2 kB cannot be written, which task.json is the first to need.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{2000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of([&] { compose::export_libero(settings(), no_report); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("task.json"), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_FALSE(entry.path().filename().string().starts_with("scenes")) << entry.path() << " is left";
}

TEST_F(LiberoCompose, AnOutputFolderWithOtherContentIsLeftAlone) {
  fs::create_directories(out());
  std::ofstream(out() / "mine.txt") << "mine";
  const std::string message = message_of([&] { compose::export_libero(settings(), no_report); });
  EXPECT_NE(message.find("exists and is not an empty folder"), std::string::npos) << message;
  EXPECT_EQ(read_file(out() / "mine.txt"), "mine");
  fs::remove(out() / "mine.txt");
  compose::export_libero(settings(), no_report);
  EXPECT_TRUE(fs::exists(task_folder() / "task.json"));
}

// ---- beside folders that LIBERO's own Python environment wrote

/// Where two JSON values differ; numbers by more than rounding.
void differences(const Json& a, const Json& b, const std::string& path, std::string& out) {
  constexpr double kRounding = 1e-12;
  if (a.is_number() && b.is_number() && a.is_boolean() == b.is_boolean()) {
    if (std::abs(a.get<double>() - b.get<double>()) > kRounding) out += path + " ";
  } else if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items())
      if (b.contains(key))
        differences(value, b.at(key), path + "/" + key, out);
      else
        out += path + "/" + key + " ";
    for (const auto& [key, value] : b.items())
      if (!a.contains(key)) out += path + "/" + key + " ";
  } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i) differences(a[i], b[i], path + "/" + std::to_string(i), out);
  } else if (a != b) {
    out += path + " ";
  }
}

sim::mj::ModelPtr compiled(const fs::path& folder) {
  const sim::EntityDeclaration scene{"scene", sim::Mjcf{.file = (folder / "scene.xml").string()}};
  return sim::mj::load(sim::compile_scene({&scene, 1}, {}, {}).mjb);
}

/// Names of the arrays in which two models differ by a bit. Not compared: the names of files. `reduced`: theirs may have
/// smaller meshes and textures.
std::string different_arrays(const mjModel& a, const mjModel& b, bool reduced) {
  std::string out;
  const auto starts = [](const std::string& name, std::initializer_list<const char*> beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(), [&](const char* part) { return name.starts_with(part); });
  };
  const auto compare = [&](const std::string& name, const auto* x, const auto* y, auto count_x, auto count_y) {
    if (starts(name, {"paths", "mesh_pathadr", "tex_pathadr"})) return;
    if (reduced && starts(name, {"mesh_", "tex_", "bvh_", "oct_", "geom_aabb", "geom_rbound", "body_bvh", "dof_length",
                                 "geom_pos", "geom_quat", "geom_size"}))
      return;
    if (count_x != count_y || !std::equal(x, x + count_x, y)) out += name + " ";
  };
#undef MJ_M
#define MJ_M(n) a.n
#define X(type, name, rows, columns)                                                                         \
  compare(#name, a.name, b.name, static_cast<std::ptrdiff_t>(a.rows) * static_cast<std::ptrdiff_t>(columns), \
          static_cast<std::ptrdiff_t>(b.rows) * static_cast<std::ptrdiff_t>(columns));
  MJMODEL_POINTERS
#undef X
  return out;
}

TEST(LiberoComposeReal, FoldersAreEqualToThoseOfLiberosOwnEnvironment) {
  const char *libero = std::getenv("COHORT_LIBERO_SOURCE"), *robosuite = std::getenv("COHORT_ROBOSUITE_SOURCE");
  if (libero == nullptr || robosuite == nullptr)
    GTEST_SKIP() << "COHORT_LIBERO_SOURCE and COHORT_ROBOSUITE_SOURCE name no checkout of LIBERO and robosuite 1.4.0";
  // Folders of scripts/export_libero.py are whole; the recorded ones have smaller meshes.
  const char* scripted = std::getenv("COHORT_LIBERO");
  std::vector<fs::path> theirs = test::libero_folders();
  if (scripted != nullptr) {
    theirs.clear();
    for (const auto& entry : fs::directory_iterator(scripted))
      if (fs::exists(entry.path() / "task.json")) theirs.push_back(entry.path());
  }
  if (theirs.empty()) GTEST_SKIP() << "neither COHORT_LIBERO nor COHORT_SHARED names folders to compare with";
  compose::ExportSettings settings{
      .libero = libero, .robosuite = robosuite, .out = test::fresh_folder("real") / "all", .suites = {}, .tasks = {}};
  for (const fs::path& folder : theirs)
    settings.tasks.push_back(parse_json<Json>(read_file(folder / "task.json")).at("task").get<std::string>());
  compose::export_libero(settings, no_report);
  for (const fs::path& folder : theirs) {
    Json expected = parse_json<Json>(read_file(folder / "task.json"));
    const fs::path ours =
        settings.out / (expected.at("suite").get<std::string>() + "__" + expected.at("task").get<std::string>());
    // What the maker of a folder looked at beside the goal is no part of the task.
    expected["watched_predicates"] = Json::array();
    std::string different;
    differences(parse_json<Json>(read_file(ours / "task.json")), expected, "", different);
    EXPECT_EQ(different, "") << folder;
    const NpyArray states = read_npy(ours / "init_states.npy"), known = read_npy(folder / "init_states.npy");
    ASSERT_GE(states.values.size(), known.values.size()) << folder;
    EXPECT_TRUE(std::equal(known.values.begin(), known.values.end(), states.values.begin())) << folder;
    EXPECT_EQ(different_arrays(*compiled(ours), *compiled(folder), scripted == nullptr), "") << folder;
  }
  if (!HasFailure()) fs::remove_all(settings.out);  // hundreds of MB
}

}  // namespace
}  // namespace cohort::tasks::libero
