// Tasks from files: what they observe, pay and draw, what they save, and what they say of faults.
#include "tasks/file/task_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "sim/host/kinematics.h"
#include "support/process.h"
#include "tasks/file/term_table.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"
#include "tasks/task_check.h"

namespace cohort::tasks {
namespace {

namespace fs = std::filesystem;

/// A trunk on two legs of a hinge each, with position servos.
constexpr const char* kHopper = R"yaml(
<mujoco model="hopper">
  <compiler autolimits="true" angle="radian"/>
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="trunk" pos="0 0 0.6">
      <freejoint name="root"/>
      <geom name="trunk" type="box" size="0.2 0.1 0.05" mass="4"/>
      <body name="left" pos="0 0.1 0">
        <joint name="left_hip" type="hinge" axis="0 1 0" range="-1 1" armature="0.02" damping="0.5"/>
        <geom name="left_foot" type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="0.5"/>
      </body>
      <body name="right" pos="0 -0.1 0">
        <joint name="right_hip" type="hinge" axis="0 1 0" range="-1 1" armature="0.02" damping="0.5"/>
        <geom name="right_foot" type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="0.5"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="left_hip" joint="left_hip" kp="30" kv="1" forcerange="-20 20"/>
    <position name="right_hip" joint="right_hip" kp="30" kv="1" forcerange="-20 20"/>
  </actuator>
  <sensor><gyro name="gyro" site="imu"/></sensor>
</mujoco>)yaml";

/// A task with something of everything that remembers or draws.
constexpr const char* kEverything = R"yaml(
scene:
  robot: {mjcf: hopper.xml, joint_pos: {"left_.*": 0.2}}
  ball: {sphere: 0.1, mass: 0.2, pos: [1, 0, 0.1]}
simulation: {decimation: 4, episode_length_s: 2}
actions:
  legs: {type: joint_position, joints: ".*_hip", scale: {"left.*": 0.5, ".*": 0.25}, delay: [0, 3]}
commands:
  twist:
    resampling_time_range: [0.1, 0.5]
    heading_command: true
    rel_heading_envs: 0.5
    rel_standing_envs: 0.2
    rel_forward_envs: 0.2
    ranges: {lin_vel_x: [-1, 1], lin_vel_y: [-0.5, 0.5], ang_vel_z: [-1, 1]}
  target: {type: uniform_pose, resampling_time_range: [0.3, 0.3], ranges: {pos_x: [0, 1], pos_z: [1, 2], yaw: [-1, 1]}}
observations:
  policy:
    base_lin_vel: {noise: 0.1}
    base_ang_vel: {noise: {gaussian: 0.2}, clip: [-1, 1], scale: 0.5}
    projected_gravity: {}
    joint_pos_rel: {bias: 0.05, delay: [0, 2]}
    joint_vel_rel: {history: 3, noise: [-0.5, 1.5]}
    last_action: {}
    generated_commands: {command_name: twist}
    goal: {formula: "command.target[:3] - base.position", unit: m}
    ball: rotate_inverse(base.quaternion, ball.position - base.position)
  critic:
    joint_pos_rel: {}
rewards:
  track_linear_velocity: {std: 0.5, weight: 2}
  track_angular_velocity: {std: 0.7}
  action_rate_l2: -0.1
  action_acc_l2: {weight: -0.01}
  joint_acc_l2: {weight: -1.0e-6}
  joint_torques_l2: {weight: -1.0e-4}
  posture: {std: {".*": 0.3}}
  variable_posture: {std_standing: 0.1, std_walking: 0.3, std_running: 0.5, weight: 0.5}
  rest: {formula: "held(norm(base.linear_velocity) < 0.05) + peak(base.position[2], last_step)"}
  floor: {formula: "max(0, -reward)", per_second: false}
terminations:
  fallen: {term: bad_orientation, limit_angle: 1.2}
  low: {term: root_height_below_minimum, minimum_height: 0.2}
  far: {formula: "norm(base.position[:2]) > 3", time_out: true}
success: "held(base.position[2] > 0.3) > 0.5"
events:
  place: {type: reset_root_state_uniform, pose_range: {x: [-0.5, 0.5], yaw: [-3, 3]}, velocity_range: {z: [0, 0.3], yaw: [-1, 1]}}
  ball: {type: reset_root_state_uniform, entity: ball, pose_range: {y: [-0.3, 0.3]}}
  legs: {type: reset_joints_by_offset, position_range: [-0.2, 0.2], velocity_range: [-1, 1]}
  scale: {type: reset_joints_by_scale, joints: right_hip, position_range: [0.5, 1.5]}
  push: {type: push_by_setting_velocity, interval_range_s: [0.2, 0.6], velocity_range: {x: [-0.5, 0.5], roll: [-0.5, 0.5]}}
play:
  observations: {policy: {base_lin_vel: {noise: null}, base_ang_vel: {noise: null}}}
  events: {push: null}
ppo: {n_envs: 64, policy: {actor_hidden_dims: [32, 32]}, algorithm: {entropy_coef: 0.01}}
)yaml";

class TaskFile : public ::testing::Test {
 protected:
  TaskFile() {
    std::string model = kHopper;
    model.replace(model.find("<sensor>"), model.find("</mujoco>") - model.find("<sensor>"), "");
    write("hopper.xml", model);
  }
  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::string everything() { return write("everything.yaml", kEverything); }

  testing::TemporaryFolder folder_;
};

void step(Task& task, std::uint64_t moment, std::uint64_t first_id = 0) {
  const ActionSpec& spec = task.spec().action;
  std::vector<float> actions;
  for (int env = 0; env < task.n_envs(); ++env) {
    const RandomStream random(9, RandomPurpose::kAction, first_id + static_cast<std::uint64_t>(env), moment);
    for (std::size_t i = 0; i < spec.names.size(); ++i)
      actions.push_back(spec.low[i] + (spec.high[i] - spec.low[i]) * random.uniform(i));
  }
  task.step(make_view(actions.data(), {task.n_envs(), spec.width()}));
}

void begin(Task& task, std::uint64_t first_seed) {
  std::vector<std::int32_t> envs;
  std::vector<std::uint64_t> seeds;
  for (int env = 0; env < task.n_envs(); ++env)
    envs.push_back(env), seeds.push_back(first_seed + static_cast<std::uint64_t>(env));
  task.reset(envs, seeds);
}

std::span<const float> observed(Task& task, const std::string& name) {
  return task.observation(task.observation_index(name)).span<float>();
}

/// Everything that is seen of an environment.
std::vector<float> seen_of(Task& task, int env) {
  std::vector<float> all;
  for (std::size_t f = 0; f < task.spec().observations.size(); ++f) {
    const auto width = static_cast<std::size_t>(task.spec().observations[f].elements());
    const std::span<const float> row =
        task.observation(f).span<float>().subspan(static_cast<std::size_t>(env) * width, width);
    all.insert(all.end(), row.begin(), row.end());
  }
  const auto e = static_cast<std::size_t>(env);
  all.push_back(task.reward().span<float>()[e]);
  all.push_back(task.success().span<std::uint8_t>()[e]);
  all.push_back(task.terminated().span<std::uint8_t>()[e]);
  all.push_back(task.truncated().span<std::uint8_t>()[e]);
  return all;
}

TEST_F(TaskFile, TheCartPoleOfAFileIsTheOneOfCpp) {
  const std::string file = std::string(COHORT_SOURCE_DIR) + "/examples/tasks/cartpole.yaml";
  const auto of_file = make_task(file, {.n_envs = 20}), of_cpp = make_task("cartpole-balance", {.n_envs = 20});
  begin(*of_file, 3), begin(*of_cpp, 3);
  auto &a = dynamic_cast<SceneTask&>(*of_file), &b = dynamic_cast<SceneTask&>(*of_cpp);
  for (SceneTask* task : {&a, &b}) {
    std::vector<float> qpos, qvel;
    for (int i = 0; i < 20; ++i) {
      qpos.insert(qpos.end(), {0.1f * static_cast<float>(i) - 1, 0.05f * static_cast<float>(i)});
      qvel.insert(qvel.end(), {0.02f * static_cast<float>(i), -0.1f});
    }
    task->scene().set_qpos(qpos), task->scene().set_qvel(qvel);
    task->read_state();
  }
  EXPECT_EQ(of_file->spec().control_period, of_cpp->spec().control_period);
  EXPECT_EQ(of_file->spec().horizon, of_cpp->spec().horizon);
  for (std::uint64_t t = 0; t < 300; ++t) {
    for (const FieldSpec& field : of_cpp->spec().observations) {
      const std::span<const float> x = observed(*of_file, field.name), y = observed(*of_cpp, field.name);
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 2e-6) << field.name << " step " << t;
    }
    step(*of_file, t), step(*of_cpp, t);
    for (std::size_t e = 0; e < 20; ++e)
      ASSERT_NEAR(of_file->reward().span<float>()[e], of_cpp->reward().span<float>()[e], 2e-6);
    for (std::size_t e = 0; e < 20; ++e)
      ASSERT_EQ(of_file->success().span<std::uint8_t>()[e], of_cpp->success().span<std::uint8_t>()[e]) << t;
  }
}

TEST_F(TaskFile, PassesTheChecksOfAllTasks) {
  const std::string examples = std::string(COHORT_SOURCE_DIR) + "/examples/tasks/";
  for (const std::string& file : {everything(), examples + "cartpole.yaml", examples + "arm_pose.yaml"})
    for (const CheckRow& row : check_task([&](int n) { return make_task(file, {.n_envs = n}); }))
      EXPECT_NE(row.outcome, CheckRow::Outcome::kFail) << file << ": " << row.name << ": " << row.found;
}

TEST_F(TaskFile, AnEpisodeIsAFunctionOfItsSeedWhereverItIsPlayed) {
  const std::string file = everything();
  for (const char* engine : {"batched", "mujoco"}) {
#ifdef __SANITIZE_THREAD__
    if (std::string(engine) == "mujoco") continue;  // its thread pool is not instrumented
#endif
    const auto many = make_task(file, {.n_envs = 37, .threads = 2, .engine = engine});
    const auto one = make_task(file, {.n_envs = 1, .engine = engine});
    begin(*many, 100);
    begin(*one, 119);
    EXPECT_EQ(seen_of(*many, 19), seen_of(*one, 0));
    EXPECT_NE(seen_of(*many, 19), seen_of(*many, 18));
    for (std::uint64_t t = 0; t < 60; ++t) {
      step(*many, t);
      step(*one, t, 19);
      ASSERT_EQ(seen_of(*many, 19), seen_of(*one, 0)) << engine << ", step " << t;
    }
  }
}

TEST_F(TaskFile, WhatWasSavedGoesOnWithTheSameBits) {
  const std::string file = everything();
  const auto task = make_task(file, {.n_envs = 20, .threads = 2}), other = make_task(file, {.n_envs = 20});
  begin(*task, 5);
  for (std::uint64_t t = 0; t < 25; ++t) step(*task, t);
  const TaskState state = task->save();
  begin(*other, 900);
  step(*other, 0);
  other->load(state, "here");
  for (std::uint64_t t = 25; t < 70; ++t) {
    if (t == 40) {
      const std::int32_t envs[] = {3, 11};
      const std::uint64_t seeds[] = {70, 71};
      task->reset(envs, seeds), other->reset(envs, seeds);
    }
    step(*task, t), step(*other, t);
    for (int env = 0; env < 20; ++env) ASSERT_EQ(seen_of(*task, env), seen_of(*other, env)) << t;
  }
}

TEST_F(TaskFile, CommandsAreDrawnInTheirRangesAndKeptForTheirTime) {
  const std::string file = everything();
  const auto task = make_task(file, {.n_envs = 64});
  begin(*task, 1);
  int standing = 0, count = 0, changes = 0;
  std::vector<float> before;
  for (std::uint64_t t = 0; t < 80; ++t) {
    const std::span<const float> twist = observed(*task, "generated_commands");
    for (std::size_t e = 0; e < 64; ++e) {
      const float x = twist[3 * e], y = twist[3 * e + 1], w = twist[3 * e + 2];
      EXPECT_TRUE(std::abs(x) <= 1 && std::abs(y) <= 0.5f && std::abs(w) <= 1);
      standing += x == 0 && y == 0 && w == 0, ++count;
      if (!before.empty()) changes += before[3 * e] != x;
    }
    before.assign(twist.begin(), twist.end());
    step(*task, t);
  }
  EXPECT_NEAR(static_cast<double>(standing) / count, 0.2, 0.05);
  // Every 0.1 to 0.5 s, rounded up to control steps: 0.31 on average, the first from the beginning, so that
  // 1.58 / 0.31 - 1/2 + (deviation / mean)^2 / 2 are expected; one of 25 draws follows standing by standing.
  EXPECT_NEAR(changes / 64.0, (1.58 / 0.31 - 0.43) * (1 - 0.04), 0.5);
}

TEST_F(TaskFile, NoiseDelayBiasAndHistoryAreThoseThatAreAskedFor) {
  const std::string file = everything();
  const auto noisy = make_task(file, {.n_envs = 64}),
             clean = make_task(file, {.n_envs = 64, .overrides = {"play=true"}});
  begin(*noisy, 1), begin(*clean, 1);
  double largest = 0;
  for (std::uint64_t t = 0; t < 3; ++t) {
    const std::span<const float> a = observed(*noisy, "base_lin_vel"), b = observed(*clean, "base_lin_vel");
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
    const std::span<const float> x = observed(*noisy, "joint_pos_rel"),
                                 truth = observed(*noisy, "critic_joint_pos_rel");
    if (t == 0)
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_LE(std::abs(x[i] - truth[i]), 0.05f + 1e-6f);
    step(*noisy, t), step(*clean, t);
  }
  EXPECT_GT(largest, 0.08);
  EXPECT_LE(largest, 0.1 + 1e-5);
  EXPECT_EQ(noisy->spec().observations[noisy->observation_index("joint_vel_rel")].shape[0], 6);
}

TEST_F(TaskFile, RewardsAreWeightTimesTermTimesControlPeriod) {
  const std::string file = write("paid.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4, episode_length_s: 1}
actions: {legs: {type: joint_position}}
observations: {policy: {joint_pos: {}}}
rewards:
  alive: {term: is_alive, weight: 3}
  once: {formula: 2, per_second: false}
  off: {formula: 1, weight: 0}
  half: 0.5 * 4
)yaml");
  const auto task = make_task(file, {.n_envs = 2});
  EXPECT_EQ(task->spec().reward_terms, (std::vector<std::string>{"alive", "once", "half"}));
  begin(*task, 0);
  step(*task, 0);
  const std::span<const float> terms = task->reward_terms().span<float>();
  EXPECT_FLOAT_EQ(terms[0], 3 * 0.02f);
  EXPECT_FLOAT_EQ(terms[1], 2);
  EXPECT_FLOAT_EQ(terms[2], 2 * 0.02f);
  EXPECT_FLOAT_EQ(task->reward().span<float>()[1], 5 * 0.02f + 2);
}

TEST_F(TaskFile, ContactsAreReadByNameOfGeomsAndLinks) {
  const std::string file = write("touch.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
observations:
  policy:
    feet: contact(".*_foot") * 1
    legs: contact(["left", "right"]) * 1
    force: sum(contact_force(".*_foot")[2])
    self: sum(other_contact(".*")) * 1
    air: held(not contact(".*_foot"))
    trunk: contact("trunk") * 1
    height: link_position("left")[2]
    speed: link_velocity("trunk")[2]
    truth: base.linear_velocity_world[2]
)yaml");
  for (const char* engine : {"batched", "mujoco"}) {
#ifdef __SANITIZE_THREAD__
    if (std::string(engine) == "mujoco") continue;  // its thread pool is not instrumented
#endif
    const auto task = make_task(file, {.n_envs = 2, .engine = engine});
    begin(*task, 0);
    // It falls from where its feet are 0.17 m over the floor.
    std::vector<float> rest(4);
    for (int t = 0; t < 25; ++t) {
      EXPECT_NEAR(observed(*task, "speed")[0], observed(*task, "truth")[0], 1e-5);
      if (t == 5) {
        EXPECT_EQ(observed(*task, "feet")[0], 0);
        EXPECT_NEAR(observed(*task, "air")[0], 0.1, 1e-6);
      }
      task->step(make_view(rest.data(), {2, 2}));
    }
    EXPECT_EQ(observed(*task, "feet")[0], 1) << engine;
    EXPECT_EQ(observed(*task, "legs")[3], 1);
    EXPECT_EQ(observed(*task, "air")[0], 0);
    EXPECT_EQ(observed(*task, "trunk")[0], 0);
    EXPECT_EQ(observed(*task, "self")[0], 0);
    EXPECT_NEAR(observed(*task, "height")[0], 0.43, 0.03);
    EXPECT_NEAR(observed(*task, "force")[0], 5 * 9.81, 25);
  }
}

TEST_F(TaskFile, WhatLastsOverEpisodesIsSaved) {
  const std::string file = write("life.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
observations: {policy: {life: lifetime}}
)yaml");
  const auto task = make_task(file, {.n_envs = 2}), other = make_task(file, {.n_envs = 2});
  for (int episode = 0; episode < 3; ++episode) {
    begin(*task, 0);
    for (std::uint64_t t = 0; t < 5; ++t) step(*task, t);
  }
  EXPECT_EQ(observed(*task, "life")[1], 15);
  begin(*other, 0);
  other->load(task->save(), "here");
  step(*other, 0);
  EXPECT_EQ(observed(*other, "life")[1], 16);
}

TEST_F(TaskFile, AnotherHorizonIsTheEndOfTheTimeForSuccessToo) {
  const std::string file = write("short.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
observations: {policy: {joint_pos: {}}}
)yaml");
  const auto task = make_task(file, {.n_envs = 1, .overrides = {"horizon=7"}});
  begin(*task, 0);
  for (std::uint64_t t = 0; t < 7; ++t) {
    EXPECT_EQ(task->success().span<std::uint8_t>()[0], 0) << t;
    step(*task, t);
  }
  EXPECT_EQ(task->success().span<std::uint8_t>()[0], 1);
  EXPECT_EQ(task->truncated().span<std::uint8_t>()[0], 1);
}

TEST_F(TaskFile, APushThatDoesNotComeLeavesEveryBitOfTheVelocities) {
  const std::string plain = R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
observations: {policy: {base_lin_vel: {}, joint_vel: {}}}
)yaml";
  const std::string push =
      "events: {push: {type: push_by_setting_velocity, interval_range_s: [0.5, 0.5], velocity_range: {x: [1, 1]}}}\n";
  const std::string quiet = write("quiet.yaml", plain), pushed = write("pushed.yaml", plain + push);
  // MuJoCo's engine has doubles, which a float would round.
#ifndef __SANITIZE_THREAD__
  const auto a = make_task(quiet, {.n_envs = 3, .engine = "mujoco"}),
             b = make_task(pushed, {.n_envs = 3, .engine = "mujoco"});
  begin(*a, 0), begin(*b, 0);
  for (std::uint64_t t = 0; t < 30; ++t) {
    const bool before = t <= 25;  // it is pushed behind the 25th step
    for (int env = 0; env < 3; ++env) EXPECT_EQ(seen_of(*a, env) == seen_of(*b, env), before) << t;
    if (t == 20) {
      const auto velocity = [](Task& task) { return dynamic_cast<SceneTask&>(task).scene().get_qvel(); };
      EXPECT_EQ(velocity(*a), velocity(*b));
    }
    step(*a, t), step(*b, t);
  }
#endif
}

TEST_F(TaskFile, LevelsOfTerrainFollowHowFarTheRobotHasCome) {
  const std::string file = write("levels.yaml", R"yaml(
scene:
  robot: {mjcf: hopper.xml}
  ground:
    terrain:
      {size: [4, 4], num_rows: 5, num_cols: 2, border_width: 2, horizontal_scale: 0.1,
       sub_terrains: [{type: pyramid_stairs, step_height_range: [0.02, 0.1], step_width: 0.4, platform_width: 1.6, border_width: 0}]}
simulation: {decimation: 4, episode_length_s: 10}
actions: {legs: {type: joint_position}}
commands: {twist: {resampling_time_range: [20, 20], ranges: {lin_vel_x: [1, 1]}}}
observations:
  policy:
    height: base.height
    scan: {term: height_scan, size: [0.4, 0.2], resolution: 0.2}
    below: ground_height(base.position)
    high: base.position[2]
curriculum: {terrain_levels: {max_init_terrain_level: 2}}
)yaml");
  const auto task = make_task(file, {.n_envs = 40, .learning = true}),
             other = make_task(file, {.n_envs = 40, .learning = true});
  const auto level = [](Task& of) {
    const TaskState state = of.save();
    const auto array = std::ranges::find(state, "terrain.level", &StateArray::name);
    std::vector<std::int32_t> levels(40);
    std::memcpy(levels.data(), array->bytes.data(), array->bytes.size());
    return levels;
  };
  begin(*task, 0);
  const std::vector<std::int32_t> first = level(*task);
  EXPECT_EQ(*std::ranges::max_element(first), 2);
  EXPECT_EQ(*std::ranges::min_element(first), 0);
  // The scan's middle is the base's height, and what is below it is what it stands over.
  const std::span<const float> scan = observed(*task, "scan"), height = observed(*task, "height"),
                               below = observed(*task, "below"), high = observed(*task, "high");
  ASSERT_EQ(scan.size(), 40u * 6);
  bool uneven = false;
  for (std::size_t e = 0; e < 40; ++e) {
    EXPECT_FLOAT_EQ(height[e], high[e] - below[e]);
    for (std::size_t i = 1; i < 6; ++i) uneven = uneven || scan[6 * e + i] != scan[6 * e];
  }
  // The platform in the middle is level; 2 m to the side it is not.
  EXPECT_FALSE(uneven);
  auto& scene = dynamic_cast<SceneTask&>(*task);
  std::vector<float> qpos = scene.scene().get_qpos();
  const std::size_t nq = qpos.size() / 40;
  step(*task, 0);
  // The first half has come 3 m, the others nowhere.
  for (std::size_t e = 0; e < 20; ++e) qpos[e * nq] += qpos[e * nq] > 0 ? -3.0f : 3.0f;
  scene.scene().set_qpos(qpos);
  other->load(task->save(), "here");
  begin(*task, 100), begin(*other, 100);
  EXPECT_EQ(level(*task), level(*other)) << "a saved level goes on elsewhere";
  const std::vector<std::int32_t> second = level(*task);
  for (std::size_t e = 0; e < 40; ++e) EXPECT_EQ(second[e], e < 20 ? first[e] + 1 : std::max(first[e] - 1, 0)) << e;

  // Where nobody learns, an episode is a function of its seed, whatever was played before; all levels are drawn.
  const auto shown = make_task(file, {.n_envs = 40});
  begin(*shown, 0);
  const std::vector<float> start = dynamic_cast<SceneTask&>(*shown).scene().get_qpos();
  for (std::uint64_t t = 0; t < 3; ++t) step(*shown, t);
  begin(*shown, 100), begin(*shown, 0);
  EXPECT_EQ(dynamic_cast<SceneTask&>(*shown).scene().get_qpos(), start);
  std::set<int> rows;
  for (std::size_t e = 0; e < 40; ++e) rows.insert(static_cast<int>(std::lround(start[e * nq] / 4)));
  EXPECT_EQ(rows.size(), 5u) << "patches of 4 m, five levels";
}

TEST_F(TaskFile, ARunKeepsItsTaskWithItsModel) {
  const std::string file = everything();
  const auto before = make_task(file, {.n_envs = 2});
  begin(*before, 4);
  step(*before, 0);
  keep_task(file, folder_.path() / "run", {});
  fs::remove(folder_.path() / "hopper.xml");
  EXPECT_NE(message_of([&] { make_task(file, {.n_envs = 2}); }).find("hopper.xml"), std::string::npos);
  use_kept_task(file, folder_.path() / "run", false);
  const auto after = make_task(file, {.n_envs = 2});
  begin(*after, 4);
  step(*after, 0);
  EXPECT_EQ(seen_of(*before, 1), seen_of(*after, 1));
}

TEST_F(TaskFile, WhereAModelOrAnIncludedFileIsGoneARunsCopyIsReadUnlessTheFileSaysSomethingElse) {
  const std::string file = everything(), changed = write("changed.yaml", kEverything),
                    other = write("other.yaml", "include: changed.yaml\nrewards: {action_rate_l2: -0.5}\n");
  const fs::path run = folder_.path() / "run";
  for (const std::string& one : {file, changed, other}) {
    keep_task(one, run, {});
    use_kept_task(one, run, true);
  }
  const auto before = make_task(file, {.n_envs = 2});
  begin(*before, 4);
  fs::remove(folder_.path() / "hopper.xml");
  const auto after = make_task(file, {.n_envs = 2});
  begin(*after, 4);
  step(*before, 0), step(*after, 0);
  EXPECT_EQ(seen_of(*before, 1), seen_of(*after, 1));
  // A word of the user's stays the user's fault.
  EXPECT_EQ(message_of([&] { make_task(file, {.overrides = {"horizn=3"}}); }).find("keeps"), std::string::npos);
  write("changed.yaml", std::string(kEverything) + "instruction: hop\n");
  const std::string said = message_of([&] { make_task(changed, {}); });
  EXPECT_NE(said.find("hopper.xml"), std::string::npos) << said;
  EXPECT_NE(said.find("it has changed since"), std::string::npos) << said;
  EXPECT_NE(said.find((run / "task" / "changed.json").string()), std::string::npos) << said;
  EXPECT_NO_THROW(make_task((run / "task" / "changed.json").string(), {}));
  fs::remove(changed);
  EXPECT_NO_THROW(make_task(other, {})) << "what it includes is gone";
  // From wherever it is named.
  EXPECT_NO_THROW(make_task((folder_.path() / "run" / ".." / "everything.yaml").string(), {}));
}

TEST_F(TaskFile, ARunKeepsTheModelsOfItsSettingsAndOfPlay) {
  const std::string file = write("settings.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}, ball: {sphere: 0.1}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
observations: {policy: {joint_pos_rel: {}}}
settings:
  balls: {default: one, when: {two: {scene: {second: {sphere: 0.2}}}, none: {scene: {ball: null}}}}
play: {scene: {board: {box: [0.1, 0.1, 0.1]}}}
)yaml");
  const fs::path run = folder_.path() / "run";
  const auto shapes = [&](const TaskSettings& settings) {
    const auto task = make_task(file, settings);
    return dynamic_cast<SceneTask&>(*task).scene().info().geoms.size();
  };
  const std::size_t one = shapes({});
  keep_task(file, run, {"balls=two"});
  use_kept_task(file, run, true);
  fs::remove(folder_.path() / "hopper.xml");
  EXPECT_EQ(shapes({.overrides = {"balls=two"}}), one + 1);
  EXPECT_EQ(shapes({}), one);
  EXPECT_EQ(shapes({.overrides = {"balls=two", "play=true"}}), one + 2);
  const std::string said = message_of([&] { make_task(file, {.overrides = {"balls=none"}}); });
  EXPECT_NE(said.find("hopper.xml"), std::string::npos) << said;
}

TEST_F(TaskFile, SitesStandAndMoveWithTheirLinks) {
  std::string model = kHopper;
  model.replace(model.find("<sensor>"), model.find("</mujoco>") - model.find("<sensor>"), "");
  const auto put = [&](const char* before, const char* site) { model.insert(model.find(before), site); };
  put("<geom name=\"left_foot\"", "<site name=\"left_sole\" pos=\"0.05 0.01 -0.43\" euler=\"0.3 -0.2 0.5\"/>");
  put("<geom name=\"right_foot\"", "<site name=\"right_sole\" pos=\"0 0 -0.43\"/>");
  put("<geom name=\"trunk\"", "<site name=\"origin\"/>");
  write("hopper.xml", model);
  const std::string file = write("sites.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
commands: {twist: {ranges: {lin_vel_x: [1, 1]}}}
observations:
  policy:
    pos: {term: site_pos_w, sites: ".*_sole"}
    quat: {term: site_quat_w, sites: left_sole}
    height: {term: foot_height, sites: ".*_sole"}
    velocity: flat(site_velocity(".*_sole"))
    turning: flat(site_angular_velocity("left_sole"))
    origin: flat(site_position("origin") - base.position)
rewards:
  feet_slip: {feet: ".*_foot", sites: ".*_sole"}
  feet_clearance: {sites: ".*_sole", target_height: 0.1}
events:
  place: {type: reset_root_state_uniform, pose_range: {x: [-0.5, 0.5], yaw: [-3, 3]}, velocity_range: {x: [-1, 1], yaw: [-1, 1]}}
)yaml");
  for (const char* engine : {"batched", "mujoco"}) {
#ifdef __SANITIZE_THREAD__
    if (std::string(engine) == "mujoco") continue;  // its thread pool is not instrumented
#endif
    const auto task = make_task(file, {.n_envs = 3, .engine = engine});
    auto& scene = dynamic_cast<SceneTask&>(*task).scene();
    begin(*task, 4);
    const sim::Kinematics& kinematics = scene.kinematics();
    for (std::uint64_t t = 0; t < 20; ++t) {
      step(*task, t);
      for (int env = 0; env < 3; ++env) {
        const std::vector<float> qpos = scene.get_qpos({env}), qvel = scene.get_qvel({env});
        const sim::Kinematics::Posture posture = kinematics.at(std::vector<double>(qpos.begin(), qpos.end()));
        const auto e = static_cast<std::size_t>(env);
        int foot = 0;
        double slip = 0;
        for (const char* name : {"left_sole", "right_sole"}) {
          const int site = kinematics.site(name);
          const sim::Kinematics::Pose pose = posture.site_pose(site);
          const std::vector<int> dofs{0, 1, 2, 3, 4, 5, 6, 7};
          std::vector<double> jacobian(6 * 8);
          posture.site_jacobian(site, dofs, jacobian);
          for (std::size_t i = 0; i < 3; ++i) {
            EXPECT_NEAR(observed(*task, "pos")[6 * e + 3 * static_cast<std::size_t>(foot) + i], pose.pos[i], 2e-5);
            double speed = 0, turning = 0;
            for (std::size_t d = 0; d < 8; ++d) {
              speed += jacobian[8 * i + d] * static_cast<double>(qvel[d]);
              turning += jacobian[8 * (3 + i) + d] * static_cast<double>(qvel[d]);
            }
            EXPECT_NEAR(observed(*task, "velocity")[6 * e + 3 * static_cast<std::size_t>(foot) + i], speed, 2e-4);
            if (foot == 0) EXPECT_NEAR(observed(*task, "turning")[3 * e + i], turning, 2e-4);
            if (i < 2) slip += std::abs(speed);
          }
          EXPECT_NEAR(observed(*task, "height")[2 * e + static_cast<std::size_t>(foot)], pose.pos[2], 2e-5);
          if (foot == 0) {
            double same = 0;
            for (std::size_t i = 0; i < 4; ++i)
              same += static_cast<double>(observed(*task, "quat")[4 * e + i]) * pose.quat[i];
            EXPECT_NEAR(std::abs(same), 1, 1e-5);
          }
          ++foot;
        }
        EXPECT_EQ(observed(*task, "origin")[3 * e], 0);
        EXPECT_GT(slip, 0);
      }
    }
  }
  const std::string said = message_of([&] {
    make_task(write("bad.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}}
actions: {legs: {type: joint_position}}
observations: {policy: {sole: {term: foot_height, sites: left_soul}}}
)yaml"),
              {});
  });
  EXPECT_NE(said.find("no site matches 'left_soul', did you mean 'left_sole'?; there are"), std::string::npos) << said;
}

TEST_F(TaskFile, AFileIncludesAnotherAndSaysWhatIsOtherwise) {
  fs::create_directories(folder_.path() / "below");
  const std::string file = write("below/other.yaml", R"yaml(
include: ../everything.yaml
scene: {ball: null}
observations: {policy: {ball: null}}
events: {ball: null}
rewards: {action_rate_l2: -0.5}
)yaml");
  everything();
  const auto one = make_task((folder_.path() / "everything.yaml").string(), {.n_envs = 2});
  const auto other = make_task(file, {.n_envs = 2});
  EXPECT_EQ(other->spec().observations.size(), one->spec().observations.size() - 1);
  EXPECT_EQ(other->spec().reward_terms, one->spec().reward_terms);
  begin(*one, 4), begin(*other, 4);
  step(*one, 0), step(*other, 0);
  const auto rate = static_cast<std::size_t>(std::ranges::find(one->spec().reward_terms, "action_rate_l2") -
                                             one->spec().reward_terms.begin());
  const float before = one->reward_terms().span<float>()[rate];
  EXPECT_LT(before, 0);
  EXPECT_FLOAT_EQ(other->reward_terms().span<float>()[rate], 5 * before);
  // A run keeps the whole.
  keep_task(file, folder_.path() / "run", {});
  fs::remove(folder_.path() / "everything.yaml");
  EXPECT_NE(message_of([&] { make_task(file, {}); }).find("include: there is no file"), std::string::npos);
  use_kept_task(file, folder_.path() / "run", false);
  EXPECT_EQ(make_task(file, {.n_envs = 2})->spec().reward_terms, one->spec().reward_terms);
}

TEST_F(TaskFile, ModelsOfAnIncludedFileLieBesideItThoseOfSettingsAndOfPlayToo) {
  fs::create_directories(folder_.path() / "below");
  write("robot.yaml", R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
observations: {policy: {joint_pos_rel: {}}}
settings:
  bodies: {default: one, when: {two: {scene: {second: {mjcf: hopper.xml, pos: [0, 3, 0]}}}}}
play: {scene: {third: {mjcf: hopper.xml, pos: [0, 6, 0]}}}
)yaml");
  const std::string file = write("below/mine.yaml", "include: ../robot.yaml\ninstruction: hop\n");
  const auto shapes = [&](const TaskSettings& settings) {
    const auto task = make_task(file, settings);
    return dynamic_cast<SceneTask&>(*task).scene().info().geoms.size();
  };
  const std::size_t one = shapes({});
  EXPECT_EQ(shapes({.overrides = {"bodies=two"}}), 2 * one);
  EXPECT_EQ(shapes({.overrides = {"bodies=two", "play=true"}}), 3 * one);
}

TEST_F(TaskFile, FilesThatIncludeEachOtherAreACircle) {
  write("a.yaml", "include: b.yaml");
  const std::string file = write("b.yaml", "include: a.yaml");
  EXPECT_NE(message_of([&] { make_task(file, {}); }).find("a circle"), std::string::npos);
  EXPECT_NE(message_of([&] { make_task(write("c.yaml", "include: [1]"), {}); }).find("the name of one task file"),
            std::string::npos);
}

TEST_F(TaskFile, EveryNamedTermCanBeRead) {
  // The parameters that terms need.
  const nlohmann::json kGiven{{"std", 0.5},
                              {"std_standing", 0.1},
                              {"std_walking", 0.2},
                              {"std_running", 0.3},
                              {"target_height", 0.5},
                              {"limit_angle", 1.0},
                              {"max_velocity", 9.0},
                              {"minimum_height", 0.1},
                              {"command_name", "twist"},
                              {"link", "trunk"},
                              {"sensor_name", "gyro"},
                              {"feet", ".*_foot"},
                              {"bodies", "trunk"},
                              {"site", "imu"},
                              {"sites", "imu|other"},
                              {"object_name", "robot"},
                              {"reaching_std", 0.2},
                              {"bringing_std", 0.3},
                              {"max_vel", 1.0}};
  std::string model = kHopper;
  model.replace(model.find("<geom name=\"trunk\""), 0, "<site name=\"imu\"/><site name=\"other\"/>");
  write("hopper.xml", model);
  nlohmann::json file{{"scene", {{"robot", {{"mjcf", "hopper.xml"}}}}},
                      {"simulation", {{"decimation", 4}}},
                      {"actions", {{"joint_position", nlohmann::json::object()}}},
                      {"commands",
                       {{"twist", {{"ranges", {{"lin_vel_x", {-1, 1}}}}}},
                        {"pose", {{"type", "uniform_pose"}, {"ranges", {{"yaw", {-1, 1}}}}}}}}};
  for (const TermEntry& entry : term_entries()) {
    nlohmann::json term = nlohmann::json::object();
    for (const TermParameterEntry& parameter : entry.parameters)
      if (std::string(parameter.standard).empty()) term[parameter.name] = kGiven.at(parameter.name);
    const std::string name = entry.name;
    if (name == "track_site_orientation" || name == "orientation_command_error") term["command_name"] = "pose";
    if (name == "cartpole_smooth_reward") term["cart"] = "left_hip", term["hinge"] = "right_hip";
    const std::string kinds = entry.kinds;
    if (kinds.find('o') != std::string::npos) file["observations"]["policy"][entry.name] = term;
    if (kinds.find('r') != std::string::npos) file["rewards"][entry.name] = term;
    if (kinds.find('t') != std::string::npos) file["terminations"][entry.name] = term;
  }
  const auto task = make_task(write("all.json", json_text(file)), {.n_envs = 16});
  begin(*task, 0);
  for (std::uint64_t t = 0; t < 5; ++t) step(*task, t);
  for (const float x : task->reward_terms().span<float>()) EXPECT_TRUE(std::isfinite(x));
}

TEST_F(TaskFile, FaultsAreNamedWithTheirPlaceAndARemedy) {
  const std::string good = R"yaml(
scene: {robot: {mjcf: hopper.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_position}}
observations: {policy: {joint_pos: {}}}
)yaml";
  const auto complaint = [&](const std::string& text, bool play = false) {
    const std::string file = write("bad.yaml", text);
    return message_of([&] { make_task(file, {.overrides = {play ? "play=true" : "play=false"}}); });
  };
  EXPECT_EQ(complaint(good), "");
  write("cup.xml",
        "<mujoco><asset><mesh name='cup' file='cup.stl'/></asset><worldbody><body name='cup'><freejoint/>"
        "<geom type='mesh' mesh='cup'/></body></worldbody></mujoco>");
  write("cup.urdf",
        "<robot name='cup'><link name='cup'><inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1' "
        "ixy='0' ixz='0' iyz='0'/></inertial><visual><geometry><mesh filename='lost/cup.obj'/></geometry>"
        "</visual><collision><geometry><mesh filename='lost/cup.obj'/></geometry></collision></link></robot>");
  const struct {
    std::string text;
    const char* says;
  } kCases[] = {
      {good + "rewards: {joint_torque_l2: -1}",
       "rewards.joint_torque_l2: there is no reward 'joint_torque_l2', did you mean 'joint_torques_l2'?"},
      {good + "rewards: {upright: {}}", "rewards.upright: the term upright needs `std`"},
      {good + "rewards: {a: {formula: joint_pos, weight: 1}}", "has 2 numbers, and a reward is one"},
      {good + "rewards: {a: {formula: 'exp(base.linear_velocty)'}}",
       "rewards.a.formula: at column 5 of `exp(base.linear_velocty)`: robot has no 'linear_velocty', did you mean "
       "'linear_velocity'?"},
      {good + "rewards: {a: {formula: 1, wieght: 2}}", "rewards.a.wieght = 2 is unknown here (is weight meant?)"},
      {good + "rewards: {joint_vel_l2: {joints: left_hpi}}", "no joint matches 'left_hpi', did you mean 'left_hip'?"},
      {good + "rewards: {joint_vel_l2: {joints: '(left'}}", "is no regular expression"},
      {good + "terminations: {a: 'base.position[2]'}", "terminations.a: is a number, not true or false"},
      {good + "terminations: {a: joint_pos > 1}", "has 2 conditions: any(...) or all(...)"},
      {good + "rewards: {track_linear_velocity: {std: 1}}", "there is no command 'twist': the file has no `commands`"},
      {good + "events: {push: {}}", "there is no event 'push'; there are reset_root_state_uniform"},
      {good + "events: {a: {type: reset_joints_by_offset, position_range: [1, -1]}}", "low is above high"},
      {good + "rewrads: {}", "rewrads = {} is unknown here (is rewards meant?)"},
      {good + "cohort: 2", "the file is of version 2 of task files, and this Cohort knows 1"},
      {good + "observations: {}", "observations stands twice"},
      {"scene: {robot: {mjcf: cup.xml}}", "holds no `cup.stl`; is `cup.xml` meant?"},
      {"scene: {robot: {urdf: cup.urdf}}", "opening file 'lost/cup.obj'"},
      {good + "scene: {robot: {mjcf: hopper.xml}, lid: {mesh: lid.stl}}", "scene stands twice"},
      {"scene: {robot: {mjcf: hopper.xml}, lid: {mesh: lid.stl}}", "entity `lid`, mesh: there is no file `"},
      {good + "rewards: {a: {formula: 'sensor(\"gyr\")[0]'}}",
       "rewards.a.formula: at column 1 of `sensor(\"gyr\")[0]`: the model has no sensor named `gyr`"},
      {"scene: {robot: {mjcf: hopper.xml}}\nactions: {joint_pos: {}}\nobservations: {policy: {builtin_sensor: "
       "{sensor_name: imu}}}",
       "the model has no sensor named `imu`"},
      {"scene: {robot: {mjcf: none.xml}}", "none.xml`; paths are relative to the task's file"},
      {"scene: {robot: {box: [1, 1]}}", "box needs 3 numbers: edge lengths, m"},
      {"scene: {robot: {}}", "says not what it is: one of mjcf, urdf"},
      {"scene: {ground: plane}", "scene has no robot"},
      {"actions: {}", "scene is missing"},
      {"scene: {robot: {mjcf: hopper.xml}}\nactions: {a: {type: joint_effort}}\nobservations: {policy: {joint_pos: "
       "{}}}",
       "joint_effort needs a motor actuator, and 'left_hip' of the joint 'left_hip' is a position one"},
      {"scene: {robot: {mjcf: hopper.xml}}\nactions: {a: {type: joint_positon}}\n", "did you mean 'joint_position'?"},
      {"scene: {robot: {mjcf: hopper.xml}}\nobservations: {policy: {joint_pos: {}}}", "actions are missing"},
      {"scene: {robot: {mjcf: hopper.xml}}\nactions: {joint_pos: {}}", "observations.policy is missing"},
      {"scene: {robot: {mjcf: hopper.xml}}\nactions: {joint_pos: {scale: {left.*: 1}}}\nobservations: {policy: "
       "{joint_pos: {}}}",
       "gives a number for the joint 'right_hip': add '.*' as the last"},
      {"scene: {robot: {mjcf: hopper.xml}}\nsimulation: {control_period: 0.012}\nactions: {joint_pos: "
       "{}}\nobservations: {policy: {joint_pos: {}}}",
       "is no multiple of the timestep, 0.005 s"},
      {"scene: [1, 2\n", "bad.yaml: line"},
      {"scene: {robot: {mjcf: hopper.xml}, cameras: [frnt]}\nactions: {joint_pos: {}}\nobservations: {policy: "
       "{joint_pos: {}}}",
       "scene.cameras names 'frnt', and the model has no such camera; it has none: write"},
      {good + "define: {a: b + 1, b: a + 1}", "'b' is defined below: a definition uses those above it"},
      {good + "define: {a: a + 1}", "'a' is defined by this itself"},
      {good + "play: {event: {push: null}}", "play.event is unknown; did you mean 'events'?"},
      {good + "play: {kept: {}}", "play.kept is unknown"},
      {good + "play: {include: a.yaml}", "play.include is unknown"},
      {good + "rewards: {smooth: 1}\nplay: {rewards: {smoth: null}}",
       "play.rewards.smoth is null, which takes away what the file does not have; did you mean 'smooth'?"},
      {good + "terminations: {a: base.position[2] < 1}", "a formula within { } or [ ] stands in quotation marks"},
  };
  for (const auto& [text, says] : kCases) {
    const std::string said = complaint(text);
    EXPECT_NE(said.find(says), std::string::npos) << text << "\nsays: " << said << "\nwanted: " << says;
  }
  EXPECT_EQ(complaint(good + "play:"), "") << "nothing is otherwise";
  // Whatever the reader knows may be otherwise.
  for (const char* section : {"summary: s", "instruction: s", "settings: {}", "define: {}", "commands: {}",
                              "rewards: {}", "terminations: {}", "metrics: {}", "events: {}", "curriculum: {}",
                              "ppo: {}", "simulation: {}", "scene: {}", "actions: {}", "observations: {}"})
    EXPECT_EQ(complaint(good + "play: {" + section + "}"), "") << section;
  EXPECT_EQ(complaint(good + "play: {success: time > 1}"), "");
  EXPECT_EQ(complaint(good + "play: {evnts: {push: null}}", true), complaint(good + "play: {evnts: {push: null}}"))
      << "in play as else";
  // All faults at once.
  const std::string said = complaint(good + "rewards: {a: 'x', b: 'y'}\nsuccess: 'z'");
  EXPECT_NE(said.find("3 faults"), std::string::npos) << said;
  EXPECT_NE(message_of([] { make_task("/nowhere/task.yaml", {}); }).find("there is no task's file"), std::string::npos);
}

}  // namespace
}  // namespace cohort::tasks
