// Parts of task files that came later: inverse kinematics as an action, curricula of commands and of weights, what events
// draw for terms, metrics.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "sim/host/kinematics.h"
#include "support/process.h"
#include "tasks/controllers/differential_ik.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"
#include "tasks/task_check.h"

namespace cohort::tasks {
namespace {

/// Four hinges, of which two turn one link, and a slide; each with a position servo.
constexpr const char* kWristedArm = R"(
<mujoco model="arm"><compiler angle="radian" autolimits="true"/><option timestep="0.002" gravity="0 0 0" integrator="implicitfast"/>
  <default><joint armature="0.05" damping="0.1"/><geom contype="0" conaffinity="0"/></default><worldbody>
  <body name="base" pos="0 0 0.2" euler="0 0 0.4">
    <joint name="turn" axis="0 0 1" range="-2 2" pos="0.01 0.02 0"/>
    <joint name="lean" axis="0 1 0" range="-1.5 1.5" pos="0 0 0.03"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03"/>
    <body name="fore" pos="0 0 0.3" euler="0.1 0.2 0">
      <joint name="elbow" axis="0 1 0" range="-2.5 2.5"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="wrist" pos="0.3 0 0">
        <joint name="reach" type="slide" axis="1 0 0" range="0 0.2"/>
        <joint name="roll" axis="1 0.2 0" range="-2 2"/>
        <geom type="box" size="0.04 0.03 0.02"/>
        <site name="grip" pos="0.08 0.01 -0.02" euler="0.2 0.1 -0.3"/>
      </body></body></body>
  <body name="other" pos="1 1 0.2"><joint name="far" axis="0 0 1" range="-1 1"/><geom size="0.05"/></body></worldbody>
  <actuator>
    <position joint="turn" kp="300" kv="30"/><position joint="lean" kp="300" kv="30"/>
    <position joint="elbow" kp="300" kv="30"/><position joint="reach" kp="3000" kv="100"/>
    <position joint="roll" kp="300" kv="10"/><position joint="far" kp="300" kv="30"/>
  </actuator></mujoco>)";

class TaskFileParts : public ::testing::Test {
 protected:
  TaskFileParts() { write("arm.xml", kWristedArm); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  static void begin(Task& task, std::uint64_t first_seed) {
    for (int env = 0; env < task.n_envs(); ++env) {
      const std::int32_t envs[] = {env};
      const std::uint64_t seeds[] = {first_seed + static_cast<std::uint64_t>(env)};
      task.reset(envs, seeds);
    }
  }
  static std::span<const float> observed(Task& task, const std::string& name) {
    return task.observation(task.observation_index(name)).span<float>();
  }
  /// The same action in every environment.
  static void step(Task& task, const std::vector<float>& action) {
    std::vector<float> all;
    for (int env = 0; env < task.n_envs(); ++env) all.insert(all.end(), action.begin(), action.end());
    task.step(make_view(all.data(), {task.n_envs(), std::ssize(action)}));
  }

  testing::TemporaryFolder folder_;
};

std::array<double, 4> product(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}

/// J^T (J J^T + damping^2 1)^-1 e in double, with MuJoCo's Jacobian.
std::vector<double> joints_change(const std::vector<double>& jacobian, const std::vector<double>& error, int joints,
                                  double damping) {
  const std::size_t m = error.size(), n = static_cast<std::size_t>(joints);
  std::vector<double> gram(m * m), y = error, change(n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j) {
      gram[i * m + j] = i == j ? damping * damping : 0;
      for (std::size_t k = 0; k < n; ++k) gram[i * m + j] += jacobian[i * n + k] * jacobian[j * n + k];
    }
  EXPECT_TRUE(solve_positive(gram, static_cast<int>(m), y, 1));
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < m; ++i) change[k] += jacobian[i * n + k] * y[i];
  return change;
}

TEST_F(TaskFileParts, InverseKinematicsGivesTheDampedLeastSquaresOfTheFramesJacobian) {
  constexpr double kDamping = 0.05, kClose = 2e-4;  // rad, m: float32 against double
  for (const bool pose : {true, false}) {
    for (const bool relative : {true, false}) {
      nlohmann::json action{
          {"type", "differential_ik"},     {"site", "grip"},      {"command_type", pose ? "pose" : "position"},
          {"use_relative_mode", relative}, {"damping", kDamping}, {"scale", relative ? 0.05 : 0.2}};
      nlohmann::json file{
          {"scene", {{"robot", {{"mjcf", "arm.xml"}, {"joint_pos", {{"elbow", 0.7}, {"reach", 0.1}}}}}}},
          {"simulation", {{"decimation", 10}}},
          {"actions", {{"hand", action}}},
          {"observations", {{"policy", {{"joint_pos", nlohmann::json::object()}}}}},
          {"events", {{"joints", {{"type", "reset_joints_by_offset"}, {"position_range", {-0.3, 0.3}}}}}}};
      const auto task = make_task(write("ik.json", json_text(file)), {.n_envs = 4});
      auto& scene = dynamic_cast<SceneTask&>(*task).scene();
      const std::size_t width = pose ? (relative ? 6 : 7) : 3;
      ASSERT_EQ(task->spec().action.names.size(), width);
      EXPECT_EQ(task->spec().action.names[1], "hand_y");
      begin(*task, 3);
      const sim::Kinematics& kinematics = scene.kinematics();
      const int site = kinematics.site("grip");
      // Where the frame is when episodes begin, from which an absolute command counts.
      std::vector<double> start(6);
      start[2] = 0.7, start[3] = 0.1;
      const sim::Kinematics::Pose home = kinematics.at(start).site_pose(site);
      for (int t = 0; t < 6; ++t) {
        const RandomStream random(7, RandomPurpose::kAction, static_cast<std::uint64_t>(t), 0);
        std::vector<float> command;
        for (std::size_t i = 0; i < width; ++i) command.push_back(2 * random.uniform(i) - 1);
        const std::vector<float> before = scene.get_qpos();
        step(*task, command);
        const std::vector<float> ctrl = scene.get_ctrl();
        for (std::size_t e = 0; e < 4; ++e) {
          const std::vector<double> q(before.begin() + static_cast<std::ptrdiff_t>(6 * e),
                                      before.begin() + static_cast<std::ptrdiff_t>(6 * e + 6));
          const sim::Kinematics::Posture posture = kinematics.at(q);
          const sim::Kinematics::Pose now = posture.site_pose(site);
          const std::vector<int> dofs{0, 1, 2, 3, 4};
          std::vector<double> jacobian(6 * 5);
          posture.site_jacobian(site, dofs, jacobian);
          std::vector<double> error;
          for (std::size_t i = 0; i < 3; ++i)
            error.push_back(relative ? 0.05 * static_cast<double>(command[i])
                                     : home.pos[i] + 0.2 * static_cast<double>(command[i]) - now.pos[i]);
          if (pose && relative)
            for (std::size_t i = 3; i < 6; ++i) error.push_back(0.05 * static_cast<double>(command[i]));
          if (pose && !relative) {
            std::array<double, 4> wanted;
            double length = 0;
            for (std::size_t i = 0; i < 4; ++i)
              wanted[i] = home.quat[i] + 0.2 * static_cast<double>(command[3 + i]), length += wanted[i] * wanted[i];
            for (double& x : wanted) x /= std::sqrt(length);
            std::array<double, 4> turn = product(wanted, {now.quat[0], -now.quat[1], -now.quat[2], -now.quat[3]});
            if (turn[0] < 0)
              for (double& x : turn) x = -x;
            const double sine = std::sqrt(turn[1] * turn[1] + turn[2] * turn[2] + turn[3] * turn[3]);
            const double angle = 2 * std::atan2(sine, turn[0]);
            for (std::size_t i = 1; i < 4; ++i) error.push_back(turn[i] * angle / sine);
          }
          if (!pose) jacobian.resize(15);
          const std::vector<double> change = joints_change(jacobian, error, 5, kDamping);
          const double low[] = {-2, -1.5, -2.5, 0, -2}, high[] = {2, 1.5, 2.5, 0.2, 2};
          for (std::size_t j = 0; j < 5; ++j) {
            const double target = std::clamp(q[j] + std::clamp(change[j], -0.5, 0.5), low[j], high[j]);
            EXPECT_NEAR(ctrl[6 * e + j], target, kClose) << pose << relative << " joint " << j;
          }
          EXPECT_EQ(ctrl[6 * e + 5], 0) << "a joint that does not move the frame";
        }
      }
    }
  }
}

// Numbers that are degrees begin episodes anywhere, and nothing is learnt.
TEST_F(TaskFileParts, AnglesOfMoreThanATurnAreTakenForDegreesAndRefused) {
  const std::string good =
      "scene: {robot: {mjcf: arm.xml, joint_pos: {elbow: 0.7, reach: 0.1}}}\n"
      "simulation: {decimation: 10, episode_length_s: 5}\n"
      "actions: {joint_position: {scale: {reach: 20, 'turn|lean|elbow|roll|far': 0.5}}}\n"
      "commands: {goal: {type: uniform_pose, ranges: {pos_x: [0, 90], yaw: [-3.1416, 6.2832]}}}\n"
      "observations: {policy: {joint_pos: {}}}\n"
      "events:\n"
      "  joints: {type: reset_joints_by_offset, joints: elbow, position_range: [-0.3, 0.3]}\n"
      "  slide: {type: reset_joints_by_offset, joints: reach, position_range: [0, 20]}\n";
  const auto said = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return message_of([&] { make_task(write("angles.yaml", text), {}); });
  };
  EXPECT_EQ(said("0.7", "0.7"), "") << "metres may be more";
  EXPECT_NE(said("elbow: 0.7", "elbow: 90")
                .find("elbow is 90 rad, more than a whole turn: angles are radians; 90 degrees "
                      "would be 1.571"),
            std::string::npos)
      << said("elbow: 0.7", "elbow: 90");
  for (const auto& [from, to, what] : std::vector<std::array<std::string, 3>>{
           {"far': 0.5", "far': 30", "the scale of 'turn' is 30 rad"},
           {"[-3.1416, 6.2832]", "[-180, 180]", "yaw is -180 rad"},
           {"[-0.3, 0.3]", "[-20, 20]", "position_range is -20 rad"},
           {"episode_length_s: 5", "episode_length_s: 0.01", "= 0.01 s is less than a control step, 0.02 s"}})
    EXPECT_NE(said(from, to).find(what), std::string::npos) << said(from, to);
}

TEST_F(TaskFileParts, AFrameGetsWhereAnAbsoluteCommandPutsIt) {
  const std::string file = write("ik.yaml", R"yaml(
scene: {robot: {mjcf: arm.xml, joint_pos: {elbow: 0.7, reach: 0.1}}}
simulation: {decimation: 10, episode_length_s: 20}
actions: {hand: {type: differential_ik, site: grip, command_type: position, use_relative_mode: false, scale: 0.1}}
observations: {policy: {pos: {term: site_pos_w, sites: grip}}}
)yaml");
  const auto task = make_task(file, {.n_envs = 1});
  begin(*task, 0);
  const std::vector<float> home(observed(*task, "pos").begin(), observed(*task, "pos").end());
  const std::vector<float> command{-0.5f, 0.6f, -0.4f};
  for (int t = 0; t < 150; ++t) step(*task, command);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(observed(*task, "pos")[i], home[i] + 0.1f * command[i], 2e-3) << i;
}

TEST_F(TaskFileParts, RangesOfCommandsFollowTheirStagesAndPlayHasTheLast) {
  const std::string file = write("stages.yaml", R"yaml(
scene: {robot: {mjcf: arm.xml}}
simulation: {decimation: 10, episode_length_s: 0.2}
actions: {joints: {type: joint_position}}
commands: {twist: {resampling_time_range: [0.02, 0.02], ranges: {lin_vel_x: [0, 1], ang_vel_z: [0, 1]}}}
observations: {policy: {command: {term: generated_commands, command_name: twist}}}
rewards:
  one: {formula: 1, weight: 2, per_second: false}
  late: {formula: 1, weight: 0, per_second: false}
curriculum:
  faster: {type: commands_vel, velocity_stages: [{step: 0, lin_vel_x: [0, 1]}, {step: 15, lin_vel_x: [2, 3]}, {step: 25, lin_vel_x: [4, 5], ang_vel_z: [-1, 0]}]}
  less: {type: reward_weight, reward_name: one, weight_stages: [{step: 12, weight: 0.5}]}
  more: {type: reward_weight, reward_name: late, stages: [{step: 20, weight: -3}]}
)yaml");
  const std::vector<float> none(6);
  const auto play_on = [&](Task& task, int first, int last, std::vector<float>& seen) {
    for (int t = first; t < last; ++t) {
      step(task, none);
      for (const float x : observed(task, "command")) seen.push_back(x);
      for (const float x : task.reward_terms().span<float>()) seen.push_back(x);
      // The next episode begins; `lifetime` goes on.
      if (t % 10 == 9) begin(task, static_cast<std::uint64_t>(t));
    }
  };
  const auto task = make_task(file, {.n_envs = 8, .learning = true});
  begin(*task, 0);
  std::vector<float> seen;
  play_on(*task, 0, 14, seen);
  const TaskState state = task->save();
  play_on(*task, 14, 34, seen);
  const std::size_t row = 8 * 3 + 8 * 2;
  for (int t = 0; t < 34; ++t) {
    const float* const at = seen.data() + static_cast<std::size_t>(t) * row;
    const int lifetime = t + 1;
    const float low = lifetime >= 25 ? 4.0f : lifetime >= 15 ? 2.0f : 0.0f;
    for (std::size_t e = 0; e < 8; ++e) {
      EXPECT_GE(at[3 * e], low) << t;
      EXPECT_LE(at[3 * e], low + 1) << t;
      EXPECT_LE(at[3 * e + 2], lifetime >= 25 ? 0.0f : 1.0f) << t;
      EXPECT_GE(at[3 * e + 2], lifetime >= 25 ? -1.0f : 0.0f) << t;
      EXPECT_EQ(at[24 + 2 * e], lifetime >= 12 ? 0.5f : 2.0f) << t;
      EXPECT_EQ(at[24 + 2 * e + 1], lifetime >= 20 ? -3.0f : 0.0f) << t;
    }
  }
  // A training that goes on has the same bits.
  const auto again = make_task(file, {.n_envs = 8, .learning = true});
  begin(*again, 77);
  again->load(state, "a test");
  std::vector<float> later;
  play_on(*again, 14, 34, later);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), seen.begin() + static_cast<std::ptrdiff_t>(14 * row)));

  // Who does not learn has the last stage.
  const auto shown = make_task(file, {.n_envs = 8});
  begin(*shown, 0);
  step(*shown, none);
  for (std::size_t e = 0; e < 8; ++e) EXPECT_GE(observed(*shown, "command")[3 * e], 4);
  EXPECT_EQ(shown->reward_terms().span<float>()[0], 0.5f);
}

TEST_F(TaskFileParts, ACommandGrowsWhereItIsFollowedAndIsSaved) {
  const std::string file = write("grows.yaml", R"yaml(
scene: {robot: {mjcf: arm.xml}}
simulation: {decimation: 10, episode_length_s: 0.2}
actions: {joints: {type: joint_position, joints: turn}}
commands: {twist: {resampling_time_range: [0.02, 0.02], ranges: {lin_vel_x: [1, 1]}}}
observations: {policy: {command: {term: generated_commands, command_name: twist}}}
rewards: {follows: {formula: 'where(action[0] > 0, 1, 0)', weight: 1}}
curriculum:
  growing: {type: command_levels, reward_name: follows, threshold: 0.75, increment: 0.25, limit_ranges: {lin_vel_x: [3, 3]}}
)yaml");
  const auto task = make_task(file, {.n_envs = 2, .learning = true});
  begin(*task, 0);
  std::vector<float> at_begin;
  // Environment 0 follows in 8 of 10 steps of each episode, environment 1 in 6.
  for (int episode = 0; episode < 6; ++episode) {
    at_begin.push_back(observed(*task, "command")[0]);
    EXPECT_FLOAT_EQ(observed(*task, "command")[3], 1);
    for (int t = 0; t < 10; ++t) {
      float actions[] = {t < 8 ? 1.0f : -1.0f, t < 6 ? 1.0f : -1.0f};
      task->step(make_view(actions, {2, 1}));
    }
    if (episode == 2) {
      const TaskState state = task->save();
      begin(*task, 500);
      task->load(state, "a test");
    }
    begin(*task, static_cast<std::uint64_t>(episode));
  }
  EXPECT_EQ(at_begin, (std::vector<float>{1, 1.5, 2, 2.5, 3, 3}));
  const auto shown = make_task(file, {.n_envs = 2, .overrides = {"play=true"}});
  begin(*shown, 0);
  EXPECT_FLOAT_EQ(observed(*shown, "command")[3], 3);
}

TEST_F(TaskFileParts, WhatEventsDrawIsInTheTermsThatNeedIt) {
  const std::string plain = R"yaml(
scene: {robot: {mjcf: arm.xml, joint_pos: {elbow: 0.5}}}
simulation: {decimation: 10}
actions: {joints: {type: joint_position, scale: 0.2}}
observations:
  policy:
    joint_pos_rel: {joints: "elbow|roll"}
    joint_pos: {}
    truth: joint_pos
    true_rel: joint_pos_rel(["elbow", "roll"])
    bias: encoder_bias
    offset: joint_default_offset
    delay: action_delay
  critic: {joint_pos: {}}
)yaml";
  const auto task = make_task(write("drawn.yaml", plain + R"yaml(
events:
  bias: {type: encoder_bias, bias_range: [-0.1, 0.1]}
  zero: {type: joint_default_pos, ranges: [-0.2, 0.2]}
  late: {type: action_delay, delay_range: [2, 2]}
)yaml"),
                              {.n_envs = 3});
  auto& scene = dynamic_cast<SceneTask&>(*task).scene();
  begin(*task, 0);
  const auto value = [&](const char* name, std::size_t i) { return observed(*task, name)[i]; };
  EXPECT_EQ(value("delay", 0), 2);
  EXPECT_NE(value("bias", 0), value("bias", 6));
  const std::size_t pair[] = {2, 4};
  const float first[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f}, then[] = {-1, -1, -1, -1, -1, -1};
  for (int t = 0; t < 4; ++t) {
    for (std::size_t e = 0; e < 3; ++e) {
      for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_FLOAT_EQ(value("joint_pos", 6 * e + i), value("truth", 6 * e + i) + value("bias", 6 * e + i));
        EXPECT_EQ(value("critic_joint_pos", 6 * e + i), value("truth", 6 * e + i));
      }
      for (std::size_t k = 0; k < 2; ++k)
        EXPECT_NEAR(value("joint_pos_rel", 2 * e + k),
                    value("true_rel", 2 * e + k) + value("bias", 6 * e + pair[k]) - value("offset", 6 * e + pair[k]),
                    1e-6);
    }
    step(*task, t == 0 ? std::vector<float>(first, first + 6) : std::vector<float>(then, then + 6));
    const std::vector<float> ctrl = scene.get_ctrl();
    for (std::size_t e = 0; e < 3; ++e)
      for (std::size_t i = 0; i < 6; ++i) {
        // The first action is done until two steps after the second.
        const float action = t < 3 ? 0.5f : -1.0f;
        EXPECT_NEAR(ctrl[6 * e + i],
                    (i == 2 ? 0.5f : 0.0f) + 0.2f * action + value("offset", 6 * e + i) - value("bias", 6 * e + i),
                    1e-6)
            << t;
      }
  }
  // Without the events, positions are as they are.
  const auto bare = make_task(write("bare.yaml", plain), {.n_envs = 1});
  begin(*bare, 0);
  EXPECT_EQ(observed(*bare, "joint_pos")[2], 0.5f);
}

TEST_F(TaskFileParts, MetricsAreOfTheStepThatIsOver) {
  const auto task = make_task(write("metrics.yaml", R"yaml(
scene: {robot: {mjcf: arm.xml}}
simulation: {decimation: 10, episode_length_s: 0.1}
actions: {joints: {type: joint_position, joints: turn, scale: 0.3}}
observations: {policy: {joint_pos: {}}}
rewards: {one: {formula: 1, per_second: false}}
metrics:
  turned: abs(joint_pos[0])
  paid: {formula: total(reward), reduce: last}
  far: joint_pos[0] > 0.2
)yaml"),
                              {.n_envs = 2});
  const std::vector<MetricSpec>& specs = task->spec().metrics;
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].name, "turned");
  EXPECT_FALSE(specs[0].at_end);
  EXPECT_TRUE(specs[1].at_end);
  begin(*task, 0);
  for (int t = 0; t < 5; ++t) {
    step(*task, {1});
    for (std::size_t e = 0; e < 2; ++e) {
      const std::span<const float> row = task->metrics().span<float>().subspan(3 * e, 3);
      EXPECT_EQ(row[0], std::abs(observed(*task, "joint_pos")[6 * e]));
      EXPECT_EQ(row[1], static_cast<float>(t + 1));
      EXPECT_EQ(row[2], observed(*task, "joint_pos")[6 * e] > 0.2f ? 1.0f : 0.0f);
    }
  }
}

TEST_F(TaskFileParts, FaultsOfTheirsAreNamedWithARemedy) {
  const std::string scene = "scene: {robot: {mjcf: arm.xml}}\nsimulation: {decimation: 10}\n";
  const std::string sees = "observations: {policy: {joint_pos: {}}}\n",
                    moves = "actions: {a: {type: joint_position}}\n";
  const std::string told = "commands: {twist: {ranges: {lin_vel_x: [0, 1]}}}\nrewards: {calm: {formula: 1}}\n";
  const auto ik = [&](const std::string& rest) {
    return scene + sees + "actions: {hand: {type: differential_ik" + rest + "}}\n";
  };
  const auto curriculum = [&](const std::string& rest) {
    return scene + sees + moves + told + "curriculum: {c: {" + rest + "}}\n";
  };
  const struct {
    std::string text;
    const char* says;
  } kCases[] = {
      {ik(""), "needs `site` or `link`"},
      {ik(", site: gripp"), "no site matches 'gripp', did you mean 'grip'?"},
      {ik(", link: '.*'"), "links: an action moves one"},
      {ik(", site: grip, joints: 'far|turn'"), "the joint 'far' does not move 'grip': leave it out of `joints`"},
      {ik(", site: grip, scale: [1, 2]"), "scale has 2 numbers, and the action 6"},
      {ik(", site: grip, damping: 0"), "damping and max_dq are above zero"},
      {ik(", site: grip, command_type: poses"), "is not supported; there are pose, position"},
      {ik(", site: grip, command: pose"), "command = \"pose\" is unknown here"},
      {scene + sees + moves + "metrics: {a: joint_pos}\n", "metrics.a: has 6 numbers, and a metric is one"},
      {scene + sees + moves + "metrics: {a: {formula: 1, reduce: max}}\n", "is not supported; there are mean, last"},
      {curriculum("type: comands_vel"), "there is no curriculum 'comands_vel', did you mean 'commands_vel'?"},
      {curriculum("type: commands_vel"), "needs `velocity_stages`: a list of stages"},
      {curriculum("type: commands_vel, velocity_stages: [{step: 5, lin_vel_x: [0, 1]}, {step: 3}]"),
       "velocity_stages[1] begins at step 3, before the one above it"},
      {curriculum("type: commands_vel, velocity_stages: [{step: 5, lin_vel: [0, 1]}]"), "is unknown here (is lin_vel_"},
      {curriculum("type: commands_vel, velocity_stages: [{step: 5, pos_x: [0, 1]}]"),
       "the command 'twist' has no range pos_x"},
      {curriculum("type: commands_vel, command_name: twits, velocity_stages: [{step: 5}]"),
       "there is no command 'twits', did you mean 'twist'?"},
      {curriculum("type: reward_weight, weight_stages: [{step: 1, weight: 1}]"), "needs `reward_name`: whose weight"},
      {curriculum("type: reward_weight, reward_name: clam, weight_stages: [{step: 1, weight: 1}]"),
       "there is no reward 'clam', did you mean 'calm'?"},
      {curriculum("type: reward_weight, reward_name: calm, weight_stages: [{step: 1}]"),
       "weight_stages[0] needs `weight`"},
      {curriculum("type: command_levels, limit_ranges: {lin_vel_x: [0, 2]}"), "needs `reward_name`"},
      {curriculum("type: command_levels, reward_name: calm"), "needs `limit_ranges`"},
  };
  for (const auto& [text, says] : kCases) {
    const std::string said = message_of([&] { make_task(write("bad.yaml", text), {}); });
    EXPECT_NE(said.find(says), std::string::npos) << text << "\nsays: " << said << "\nwanted: " << says;
  }
}

TEST_F(TaskFileParts, WhatIsToBeKnownOfTheScenesFilesIsShownOnce) {
  write("rod.urdf", R"(<robot name="rod"><link name="foot"/><link name="rod">
      <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
      <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
      <joint name="hinge" type="revolute"><parent link="foot"/><child link="rod"/><axis xyz="0 1 0"/>
      <limit lower="-1" upper="1" effort="10" velocity="5"/></joint></robot>)");
  write("rod.srdf", R"(<robot name="rod"><disable_collisions link1="foot" link2="rodd" reason="Never"/></robot>)");
  const std::string task = write("rod.yaml", R"yaml(
scene: {robot: {urdf: rod.urdf, fixed: true, actuators: {servo: {joints: hinge, stiffness: 10, damping: 1}}}}
simulation: {decimation: 4}
actions: {joint_pos: {}}
observations: {policy: {joint_pos: {}}}
)yaml");
  const std::string file = write("log", "");
  log::add_file(file);
  for (int i = 0; i < 2; ++i) make_task(task, {});
  log::remove_file(file);
  const std::string said = read_file(file);
  const std::size_t line = said.find("it names a link that the URDF file does not have: `rodd`");
  EXPECT_NE(line, std::string::npos) << said;
  EXPECT_EQ(said.find("`rodd`", line + 80), std::string::npos) << said;
}

}  // namespace
}  // namespace cohort::tasks
