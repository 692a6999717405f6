// LIBERO's scenes as Tasks: episodes by seed alone, warm-up, names, pictures, the expert.
#include "tasks/libero/libero_task.h"

#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "core/files.h"
#include "data/images/codec.h"
#include "tasks/actor.h"
#include "tasks/libero/burners.h"
#include "tasks/libero/simulation.h"
#include "tasks/libero_data.h"
#include "tasks/rollout.h"

namespace cohort::tasks::libero {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Task> made(const char* folder, TaskSettings settings = {}) {
  return make_libero_task(test::libero_data() / folder, settings);
}

std::vector<float> observation_row(Task& task, const char* name, int env) {
  const std::size_t field = task.observation_index(name);
  const auto width = static_cast<std::size_t>(task.spec().observations[field].elements());
  const auto row = task.observation(field).span<float>().subspan(static_cast<std::size_t>(env) * width, width);
  return {row.begin(), row.end()};
}

// An episode that begins while others are under way, in another slot, comes out bit for bit as alone.
TEST(LiberoTask, AnEpisodeIsAFunctionOfItsSeedAndActions) {
  COHORT_NEED_LIBERO_DATA();
  for (const char* engine : {"mujoco", "batched"}) {
    const auto alone = made("scene10_bowl_in_top_drawer", {.n_envs = 1, .engine = engine});
    const auto many = made("scene10_bowl_in_top_drawer", {.n_envs = 3, .threads = 2, .engine = engine});
    const std::int32_t all[] = {0, 1, 2}, one[] = {0}, later[] = {2, 0};
    const std::uint64_t seeds[] = {5, 6, 7}, seed[] = {3}, other_seeds[] = {3, 4};
    std::vector<float> actions(21, 0.0f), action(7, 0.0f);
    const auto act = [&](int step) {
      for (std::size_t i = 0; i < 7; ++i) action[i] = 0.5f * static_cast<float>(std::sin(0.3 * step + double(i)));
      std::copy(action.begin(), action.end(), actions.begin() + 14);
    };
    many->reset(all, seeds);
    for (int step = 0; step < 3; ++step) act(step), many->step(make_view(actions.data(), {3, 7}));
    many->reset(later, other_seeds);
    alone->reset(one, seed);
    for (int step = 0; step < 8; ++step) {
      act(step);
      many->step(make_view(actions.data(), {3, 7}));
      alone->step(make_view(action.data(), {1, 7}));
    }
    for (const char* name : {"robot0_proprio-state", "object-state"})
      EXPECT_EQ(observation_row(*many, name, 2), observation_row(*alone, name, 0)) << engine << " " << name;
  }
}

TEST(LiberoTask, WhatWasSavedGoesOnWithTheSameBits) {
  COHORT_NEED_LIBERO_DATA();
  for (const char* engine : {"mujoco", "batched"}) {
    const TaskSettings settings{.n_envs = 2, .threads = 2, .engine = engine};
    const auto task = made("scene10_bowl_in_top_drawer", settings),
               again = made("scene10_bowl_in_top_drawer", settings);
    const std::int32_t both[] = {0, 1};
    const std::uint64_t seeds[] = {5, 6};
    std::vector<float> actions(14);
    const auto act = [&](int step) {
      for (std::size_t i = 0; i < actions.size(); ++i)
        actions[i] = 0.5f * static_cast<float>(std::sin(0.3 * step + static_cast<double>(i)));
    };
    task->reset(both, seeds);
    for (int step = 0; step < 5; ++step) act(step), task->step(make_view(actions.data(), {2, 7}));
    again->load(task->save(), "the test");
    for (int step = 5; step < 10; ++step) {
      for (std::size_t f = 0; f < task->spec().observations.size(); ++f) {
        const std::string& name = task->spec().observations[f].name;
        for (int env = 0; env < 2; ++env)
          ASSERT_EQ(observation_row(*task, name.c_str(), env), observation_row(*again, name.c_str(), env))
              << engine << " " << name;
      }
      act(step);
      task->step(make_view(actions.data(), {2, 7})), again->step(make_view(actions.data(), {2, 7}));
    }
  }
}

TEST(LiberoTask, ObservationsHaveRobosuitesAndTheDataSetsNames) {
  COHORT_NEED_LIBERO_DATA();
  const auto task = made("long_soup_and_sauce_in_basket");
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {0};
  task->reset(envs, seeds);
  const auto soup = observation_row(*task, "alphabet_soup_1_pos", 0), eef = observation_row(*task, "robot0_eef_pos", 0),
             quat = observation_row(*task, "robot0_eef_quat", 0),
             in_hand = observation_row(*task, "alphabet_soup_1_to_robot0_eef_pos", 0),
             states = observation_row(*task, "ee_states", 0);
  // Turned back by the hand's orientation, the vector in the hand's frame is the difference of the positions.
  const Mat3 hand = rotation({quat[3], quat[0], quat[1], quat[2]});
  const Vec3 back = hand * Vec3{in_hand[0], in_hand[1], in_hand[2]};
  double length = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(back[k], soup[k] - eef[k], 1e-5);
    EXPECT_EQ(states[k], eef[k]);
    length += states[3 + k] * states[3 + k];
  }
  // The hand points down: it is turned by about half a turn.
  EXPECT_NEAR(std::sqrt(length), 3.14, 0.2);
  EXPECT_EQ(observation_row(*task, "robot0_proprio-state", 0).size(), 39u);
  EXPECT_EQ(observation_row(*task, "object-state", 0).size() % 14, 0u);
  EXPECT_EQ(task->spec().cameras.front(), "agentview");
  EXPECT_EQ(task->spec().instruction, "put both the alphabet soup and the tomato sauce in the basket");
  EXPECT_DOUBLE_EQ(task->spec().control_period, 0.05);
  EXPECT_EQ(task->spec().horizon, 600);
}

// What set_init_state() of LIBERO 8f1084e with robosuite 1.4.0 returned for the first initial state of this task.
TEST(LiberoTask, ObservationsOfAnInitialStateAreLiberos) {
  COHORT_NEED_LIBERO_DATA();
  TaskSettings settings;
  settings.overrides = {"warmup_steps=0"};
  const auto task = made("scene10_close_top_drawer", settings);
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {0};
  task->reset(envs, seeds);
  const std::pair<const char*, std::vector<double>> kExpected[] = {
      {"akita_black_bowl_1_to_robot0_eef_pos", {0.109992493, -0.016994040, 0.202873456}},
      {"akita_black_bowl_1_to_robot0_eef_quat", {0.678957760, -0.733530283, -0.026222676, 0.016185395}},
      {"butter_2_to_robot0_eef_pos", {0.117594547, -0.226774717, 0.239031271}},
      {"butter_2_to_robot0_eef_quat", {-0.038588490, -0.998779893, -0.007097451, 0.029987032}},
      {"ee_ori", {3.123660678, -0.120684600, -0.093783750}}};
  for (const auto& [name, expected] : kExpected) {
    const auto row = observation_row(*task, name, 0);
    ASSERT_EQ(row.size(), expected.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      EXPECT_NEAR(static_cast<double>(row[i]), expected[i], 1e-6) << name << " " << i;
  }
}

TEST(LiberoTask, AProtocolSaysWarmUpAndLimit) {
  COHORT_NEED_LIBERO_DATA();
  TaskSettings settings;
  settings.overrides = {"protocol=lerobot"};
  const auto lerobot = made("long_soup_and_sauce_in_basket", settings);
  EXPECT_EQ(lerobot->spec().horizon, 520);
  settings.overrides = {"warmup_steps=0", "horizon=7"};
  const auto none = made("long_soup_and_sauce_in_basket", settings), libero = made("long_soup_and_sauce_in_basket");
  EXPECT_EQ(none->spec().horizon, 7);
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {1}, same[] = {11};
  for (Task* task : {lerobot.get(), none.get(), libero.get()}) task->reset(envs, seeds);
  // LeRobot's opens the gripper, LIBERO's leaves it; without a warm-up the fingers are where the state has them.
  const float opened = observation_row(*lerobot, "robot0_gripper_qpos", 0)[0],
              still = observation_row(*libero, "robot0_gripper_qpos", 0)[0],
              given = observation_row(*none, "robot0_gripper_qpos", 0)[0];
  EXPECT_NEAR(given, 0.020833, 1e-6);
  EXPECT_NEAR(still, 0.0205, 1e-3);
  EXPECT_GT(opened, 0.03f);
  const auto first = observation_row(*libero, "object-state", 0);
  libero->reset(envs, same);
  EXPECT_EQ(observation_row(*libero, "object-state", 0), first) << "there are ten initial states: 11 is 1 again";
}

TEST(LiberoTask, PerturbedStatesAreOtherStatesBySeed) {
  COHORT_NEED_LIBERO_DATA();
  const SceneFolder folder = read_scene_folder(test::libero_data() / "scene10_close_top_drawer");
  Simulation simulation(folder, {});
  const auto a = perturbed_state(folder, simulation.frames(), 100000),
             again = perturbed_state(folder, simulation.frames(), 100000),
             b = perturbed_state(folder, simulation.frames(), 100001);
  EXPECT_EQ(a, again);
  EXPECT_NE(a, b);
  for (std::int64_t i = 0; i < folder.states; ++i) {
    const auto given = folder.initial_state(i);
    EXPECT_FALSE(std::equal(given.begin(), given.end(), a.begin()));
  }
  // The drawer stays open, within its range.
  const Frames::Joint& drawer = simulation.frames().joint_at(simulation.frames().joint("wooden_cabinet_1_top_level"));
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const double q = perturbed_state(folder, simulation.frames(), seed)[1 + drawer.qpos];
    EXPECT_GT(q, drawer.low);
    EXPECT_LT(q, -0.1);
  }
}

TEST(LiberoTask, AnActionThatIsNotFiniteBreaksItsEnvironmentAlone) {
  COHORT_NEED_LIBERO_DATA();
  const auto task = made("scene3_turn_on_stove", {.n_envs = 2});
  const std::int32_t envs[] = {0, 1};
  const std::uint64_t seeds[] = {0, 1};
  task->reset(envs, seeds);
  std::vector<float> actions(14, 0.0f);
  actions[3] = std::nanf("");
  task->step(make_view(actions.data(), {2, 7}));
  EXPECT_EQ(task->broken().span<std::uint8_t>()[0], 1);
  EXPECT_EQ(task->terminated().span<std::uint8_t>()[0], 1);
  EXPECT_EQ(task->broken().span<std::uint8_t>()[1], 0);
  task->reset(envs, seeds);
  EXPECT_EQ(task->broken().span<std::uint8_t>()[0], 0);
}

TEST(LiberoTask, TheExpertClosesTheDrawerFromTheGivenAndFromPerturbedStates) {
  COHORT_NEED_LIBERO_DATA();
  for (const char* start : {"start=given", "start=perturbed"}) {
    TaskSettings settings{.n_envs = 10, .threads = 2};
    settings.overrides = {start};
    const auto task = made("scene10_close_top_drawer", settings);
    const auto expert = task->make_expert(0);
    ASSERT_TRUE(expert);
    int solved = 0;
    std::int64_t steps = 0;
    for (const EpisodeOutcome& outcome : run_episodes(*task, *expert, consecutive_seeds(0, 10), {.max_steps = 200}))
      solved += outcome.success, steps += outcome.steps;
    std::printf("expert, %s: %d of 10 in %.1f steps\n", start, solved, static_cast<double>(steps) / 10);
    EXPECT_GE(solved, 9) << start;
  }
  for (const char* other : {"scene3_turn_on_stove", "goal_open_middle_drawer"})
    EXPECT_FALSE(made(other)->make_expert(0)) << other;
}

// A success is the same in the engine `batched` for actions that touch nothing but the drawer.
TEST(LiberoTask, TheExpertClosesTheDrawerInTheBatchedEngineToo) {
  COHORT_NEED_LIBERO_DATA();
  const auto task = made("scene10_close_top_drawer", {.n_envs = 5, .engine = "batched"});
  const auto expert = task->make_expert(0);
  int solved = 0;
  for (const EpisodeOutcome& outcome : run_episodes(*task, *expert, consecutive_seeds(0, 5), {.max_steps = 200}))
    solved += outcome.success;
  EXPECT_GE(solved, 4);
}

/// Peak signal-to-noise ratio, dB.
double psnr(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double(a[i]) - double(b[i]), 2);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / std::max(1e-9, sum));
}

// Meshes and textures of the folders are smaller than LIBERO's, which the recorded pictures show: 31 dB and more.
TEST(LiberoTask, PicturesOfTheInitialStateAreLiberos) {
  COHORT_NEED_LIBERO_DATA();
  for (const fs::path& path : test::libero_folders()) {
    TaskSettings settings;
    settings.overrides = {"warmup_steps=0"};
    const auto task = make_libero_task(path, settings);
    const std::int32_t envs[] = {0};
    const std::uint64_t seeds[] = {0};
    task->reset(envs, seeds);
    const std::pair<const char*, const char*> kFiles[] = {{"agentview_rgb", "agentview.png"},
                                                          {"eye_in_hand_rgb", "eye_in_hand.png"}};
    for (const auto& [camera, file] : kFiles) {
      std::vector<std::uint8_t> drawn;
      try {
        const auto picture = task->picture(camera, envs).span<std::uint8_t>();
        drawn.assign(picture.begin(), picture.end());
      } catch (const Error& e) {
        GTEST_SKIP() << "no OpenGL: " << e.what();
      }
      data::Image expected;
      data::decode_image(read_file(path / file), 3, expected);
      ASSERT_EQ(expected.pixels.size(), drawn.size());
      const double db = psnr(drawn, expected.pixels);
      std::printf("%s %s: %.1f dB\n", path.filename().c_str(), file, db);
      EXPECT_GT(db, 29) << path << " " << file;
    }
  }
}

// The knob is turned in the scene's state: the burner's red comes with the next picture, in this environment alone.
TEST(LiberoTask, AStoveThatIsOnGlows) {
  COHORT_NEED_LIBERO_DATA();
  const SceneFolder folder = read_scene_folder(test::libero_data() / "scene3_turn_on_stove");
  Simulation simulation(folder, {.n_envs = 2});
  Burners burners(simulation);
  ASSERT_TRUE(burners.any());
  std::vector<double> state(folder.initial_state(0).begin(), folder.initial_state(0).end());
  EXPECT_FALSE(burners.lit(std::span(state).subspan(1)));
  const std::size_t knob = simulation.frames().joint_at(simulation.frames().joint("flat_stove_1_button")).qpos;
  state[1 + knob] = 0.6;
  simulation.reset(1, state);
  EXPECT_TRUE(burners.lit(simulation.qpos(1)));
  EXPECT_FALSE(burners.lit(simulation.qpos(0)));
  const render::RendererSettings settings{.kind = "raycast", .geom_groups = folder.geom_groups};
  const auto renderer = render::make_renderer(simulation.scene(), settings);
  const std::int32_t envs[] = {1};
  std::vector<std::uint8_t> dark(128 * 128 * 3), lit(dark.size());
  renderer->render(renderer->camera("agentview"), envs, {.rgb = make_view(dark.data(), {1, 128, 128, 3})});
  burners.draw("agentview", envs, settings, make_view(lit.data(), {1, 128, 128, 3}));
  int redder = 0, others = 0;
  for (std::size_t i = 0; i < dark.size(); i += 3) {
    const int red = lit[i] - dark[i], green = lit[i + 1] - dark[i + 1];
    if (red - green > 40)
      ++redder;
    else
      others += std::abs(red) > 2;
  }
  EXPECT_GT(redder, 20);
  EXPECT_LT(others, redder);
}

}  // namespace
}  // namespace cohort::tasks::libero
