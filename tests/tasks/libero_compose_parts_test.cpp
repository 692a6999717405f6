// The parts of LIBERO's scenes that can be shown without its files: its problem language, its list of tasks, NumPy's
// random numbers, its initial states.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/message_of.h"
#include "support/fresh_folder.h"
#include "tasks/libero/compose/bddl.h"
#include "tasks/libero/compose/description.h"
#include "tasks/libero/compose/initial_states.h"
#include "tasks/libero/compose/numpy_random.h"
#include "tasks/libero/compose/placement.h"
#include "tasks/libero/compose/suite_map.h"
#include "tasks/libero_checkout.h"

namespace cohort::tasks::libero::compose {
namespace {

using Predicates = std::vector<std::vector<std::string>>;

constexpr const char* kProblem = R"((define (problem LIBERO_Kitchen_Tabletop_Manipulation)
  (:domain robosuite)
  (:language Close the Top drawer)   ; a comment (with brackets)
  (:regions
    (init_region (:target kitchen_table) (:ranges ((-0.01 -0.31 0.01 -2.9e-1))) (:yaw_rotation ((3.14 3.15)))
                 (:rgba (1 0.5 0 1)))
    (top_region (:target wooden_cabinet_1)))
  (:fixtures kitchen_table - kitchen_table wooden_cabinet_1 - wooden_cabinet)
  (:objects butter_1 butter_2 - butter plate_1 - plate butter_3 - butter)
  (:obj_of_interest wooden_cabinet_1)
  (:init (On Wooden_Cabinet_1 kitchen_table_init_region) (Open wooden_cabinet_1_top_region))
  (:goal (And (Close wooden_cabinet_1_top_region) (In butter_3 wooden_cabinet_1_top_region))))
)";

TEST(Bddl, AProblemIsReadAsThePythonPackageReadsIt) {
  const Problem problem = read_problem(kProblem, "x.bddl");
  EXPECT_EQ(problem.name, "libero_kitchen_tabletop_manipulation");
  EXPECT_EQ(problem.language, "close the top drawer");
  EXPECT_EQ(problem.initial, (Predicates{{"on", "wooden_cabinet_1", "kitchen_table_init_region"},
                                         {"open", "wooden_cabinet_1_top_region"}}));
  EXPECT_EQ(problem.goal,
            (Predicates{{"close", "wooden_cabinet_1_top_region"}, {"in", "butter_3", "wooden_cabinet_1_top_region"}}));
  const Region* region = problem.region("kitchen_table_init_region");
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->ranges.at(0), (std::array<double, 4>{-0.01, -0.31, 0.01, -0.29}));
  EXPECT_EQ(region->yaw, (std::array<double, 2>{3.14, 3.15}));
  EXPECT_EQ(region->rgba, (std::array<double, 4>{1, 0.5, 0, 1}));
  EXPECT_EQ(problem.region("wooden_cabinet_1_top_region")->rgba, (std::array<double, 4>{0, 0, 1, 0}));
  // A dictionary in Python: a category named again keeps its place and loses its first names.
  ASSERT_EQ(problem.objects.size(), 2u);
  EXPECT_EQ(problem.objects[0].first, "butter");
  EXPECT_EQ(problem.objects[0].second, (std::vector<std::string>{"butter_3"}));
}

TEST(Bddl, WhatIsWrongIsSaidWithItsPlace) {
  const auto said = [](const std::string& text) { return message_of([&] { read_problem(text, "x.bddl"); }); };
  const auto expect = [&](const std::string& text, const std::string& part) {
    const std::string message = said(text);
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("x.bddl: ")) << message;
  };
  const std::string whole = kProblem;
  expect(whole.substr(0, whole.size() / 2), "a closing bracket is missing");
  expect(whole + "\n)", "line 14: something stands behind the last bracket");
  expect("(define (problem p)\n(:goal (Up a)) ))", "line 2");
  expect("(define (problem p) (:goal (And (Up a))) (:imagined x))", "section `:imagined`");
  expect("(define (problem p))", "no goal");
  expect("(define (problem p) (:regions (r (:target t) (:ranges ((1 2 3))))))", "a range has 3 numbers, not 4");
  expect("(define (problem p) (:regions (r (:target t) (:ranges ((1 2 3 pi))))))", "`pi` is no list of numbers");
  expect("(define (problem p) (:regions (r (:ranges ((1 2 3 4))))))", "has no target");
  expect("(define (problem p) (:objects a_1 b_1))", "`a_1` has no category");
  expect(std::string(5000, '('), "brackets in one another");
}

TEST(Bddl, DamagedProblemsNeverCrashTheReader) {
  const std::string whole = kProblem;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = "()-; x"[i % 6];
    for (const std::string& text : {damaged, whole.substr(0, i)}) {
      const std::string message = message_of([&] { read_problem(text, "x"); });
      EXPECT_TRUE(message.empty() || message.starts_with("x")) << message;
    }
  }
}

TEST(SuiteMap, LiberosDictionaryIsReadAsDataAndNothingElseIs) {
  const SuiteMap map =
      read_suite_map("import os\nlibero_task_map = {\n  'a': [\"x\", 'y'],  # two\n  \"b\": [],\n}\n", "m.py");
  EXPECT_EQ(map, (SuiteMap{{"a", {"x", "y"}}, {"b", {}}}));
  for (const char* text : {"libero_task_map = {'a': os.listdir()}", "libero_task_map = {'a': ['x'", "x = {}",
                           "libero_task_map = {'a': ['../../x']}", "libero_task_map = {'a': ['x' y]}",
                           "libero_task_map", "libero_task_map = {'a': ['x\\n']}", ""})
    EXPECT_TRUE(message_of([&] { read_suite_map(text, "m.py"); }).starts_with("m.py: ")) << text;
}

TEST(SuiteMap, AMissingCommaBetweenTwoTasksIsReadAsTwoTasks) {
  const SuiteMap map = read_suite_map("libero_task_map = {\n 'a': [\n 'x(1)'\n 'y(2)',\n 'z' ],\n}\n", "m.py");
  EXPECT_EQ(map, (SuiteMap{{"a", {"x(1)", "y(2)", "z"}}}));
}

TEST(NumpyRandom, TheNumbersOfNumpysLegacyGenerator) {
  // numpy 2.4.6: numpy.random.seed(0), then these calls in this order.
  NumpyRandom random(0);
  for (const double value : {0.5488135039273248, 0.7151893663724195, 0.6027633760716439})
    EXPECT_EQ(random.uniform(), value);  // random()
  // randn(5); the last bits of a logarithm are the library's.
  constexpr double kLastBits = 1e-15;
  for (const double value :
       {-2.268328201180374, 1.3335453816218967, -0.8427240538292873, 1.9699244478698945, 1.2661185298577784})
    EXPECT_NEAR(random.normal(), value, kLastBits);
  for (const std::uint32_t value : {2u, 0u, 1u, 1u, 1u, 1u}) EXPECT_EQ(random.below(3), value);  // randint(3)
  EXPECT_EQ(random.below(1), 0u);                                                                // randint(1)
  EXPECT_EQ(random.uniform(-1.5, 2), -0.31911343853956065);
  EXPECT_NEAR(random.normal(), -0.5058765397605117, kLastBits);  // the sixth, which was kept
  EXPECT_EQ(random.uniform(), 0.6481718720511972);
}

TEST(InitialStates, AnArrayThatTorchSavedIsReadWithoutPython) {
  const auto folder = test::fresh_folder("states");
  const std::vector<double> values{0, -1.5, 1e300, 3.141592653589793, -0.0, 7};
  write_file_atomically(folder / "a.pruned_init", test::saved_array(3, 2, values));
  const NpyArray all = read_initial_states(folder / "a.pruned_init");
  EXPECT_EQ(all.shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(all.values, values);
  EXPECT_EQ(read_initial_states(folder / "a.pruned_init", 2).values.size(), 4u);
  // numpy.save of arange(6.).reshape(3, 2) makes this header, of 128 bytes.
  write_npy(folder / "a.npy", all);
  const std::string bytes = read_file(folder / "a.npy");
  EXPECT_EQ(bytes.substr(6, 68),
            std::string("\1\0v\0", 4) + "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }     ");
  EXPECT_EQ(bytes.size(), 128 + sizeof(double) * 6);
  EXPECT_EQ(read_npy(folder / "a.npy").values, values);
}

TEST(InitialStates, AFileThatAsksForMoreThanAnArrayIsRefusedAndNothingRuns) {
  const auto folder = test::fresh_folder("states");
  const auto said = [&](const std::string& bytes) {
    std::ofstream(folder / "b.pruned_init", std::ios::binary) << bytes;
    return message_of([&] { read_initial_states(folder / "b.pruned_init"); });
  };
  const auto archive = [](const std::string& pickle) {
    const ZipEntry entry{"archive/data.pkl", pickle.size(), 0, zip_crc(0, pickle)};
    const std::string header = zip_local_header(entry);
    return header + pickle + zip_directory({&entry, 1}, header.size() + pickle.size());
  };
  EXPECT_NE(said(archive("\x80\x02"
                         "cposix\nsystem\nX\x02\0\0\0ls\x85R."))
                .find("asks for posix.system, which is no part of a NumPy array: nothing was run"),
            std::string::npos);
  EXPECT_NE(said(archive("\x80\x02"
                         "ctorch\nFloatStorage\n."))
                .find("asks for torch.FloatStorage"),
            std::string::npos);
  EXPECT_NE(said(archive("\x80\x02K\x01.")).find("holds no array of float64"), std::string::npos);
  EXPECT_NE(said("no zip").find("no directory at its end"), std::string::npos);
  EXPECT_NE(message_of([&] { read_initial_states(folder / "c"); }).find("c is missing"), std::string::npos);
  const std::string whole = test::saved_array(2, 2, {1, 2, 3, 4});
  for (std::size_t i = 0; i < whole.size(); i += 3) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    said(damaged);
    said(whole.substr(0, i));
  }
}

/// A kitchen with a cabinet and three plates of 6 cm, all of which may stand in `ranges`; the second has two rotations.
ComposedScene crowded_kitchen(const std::string& ranges) {
  ComposedScene scene;
  scene.problem = read_problem(
      "(define (problem LIBERO_Kitchen_Tabletop_Manipulation) (:goal (Up plate_1)) (:regions"
      " (plates (:target kitchen_table) (:ranges (" +
          ranges +
          ")))"
          " (wall (:target kitchen_table) (:ranges ((0 0.2 0.1 0.3))) (:yaw_rotation ((3 2)))))"
          " (:init (On plate_1 kitchen_table_plates) (On plate_2 kitchen_table_plates)"
          " (On plate_3 kitchen_table_plates) (On cabinet_1 kitchen_table_wall) (Open cabinet_1)))",
      "kitchen");
  scene.arena = &arena_of(scene.problem.name);
  for (const char* name : {"plate_1", "plate_2", "plate_3", "cabinet_1"}) {
    ComposedThing thing;
    thing.name = name;
    thing.fixture = thing.name == "cabinet_1";
    thing.radius = thing.fixture ? 0.2 : 0.06;
    thing.top = thing.fixture ? 0.1 : 0.02;
    thing.bottom = -thing.top;
    thing.rotations = thing.name == "plate_2" ? 2 : 1;
    scene.things.push_back(std::move(thing));
  }
  return scene;
}

TEST(LiberoPlacement, AThingThatWouldOverlapIsDrawnAgainAsRobosuiteDoes) {
  // numpy.random.seed(0), randn(7), uniform() twice for (Open ...), then the loop of MultiRegionRandomSampler.sample with
  // randint(2) for the range: 1, 2 and 6 tries for the plates.
  const FixturePose pose = place_fixtures(crowded_kitchen("(-0.1 -0.1 0.1 0.1) (0.1 0.1 0.15 0.15)")).at("cabinet_1");
  constexpr double kRounding = 1e-15;
  EXPECT_EQ(pose.pos[0], 0.022232138825158766);
  EXPECT_EQ(pose.pos[1], 0.2386488981125862);
  EXPECT_NEAR(pose.pos[2], 0.96, kRounding);
  EXPECT_NEAR(pose.quat[0], 0.11921289781730544, kRounding);
  EXPECT_NEAR(pose.quat[3], 0.9928687148832924, kRounding);
}

TEST(LiberoPlacement, NoRoomForAThingIsAnError) {
  const std::string message = message_of([] { place_fixtures(crowded_kitchen("(0 0 0.01 0.01)")); });
  EXPECT_NE(message.find("no free places"), std::string::npos) << message;
}

TEST(LiberoLanguage, AnInstructionComesFromTheTasksName) {
  EXPECT_EQ(language_of("KITCHEN_SCENE10_close_the_top_drawer"), "close the top drawer");
  EXPECT_EQ(language_of("LIVING_ROOM_SCENE2_put_both"), "put both");
  EXPECT_EQ(language_of("pick_up_the_butter"), "pick up the butter");
}

}  // namespace
}  // namespace cohort::tasks::libero::compose
