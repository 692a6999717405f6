// Frames and markers of task files: where an episode puts a frame and a marker, and a frame that keeps its orientation,
// stays in a box and leaves what is open to a rest posture.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/fnv.h"
#include "core/format.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "core/vec3.h"
#include "sim/host/kinematics.h"
#include "support/process.h"
#include "tasks/controllers/differential_ik.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

class TaskFileFrames : public ::testing::Test {
 protected:
  std::string write(const std::string& text) const {
    const std::string path = (folder_.path() / "task.yaml").string();
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

  testing::TemporaryFolder folder_;
};

TEST_F(TaskFileFrames, AHeldFrameInABoxMovesAsDampedLeastSquaresWithARestPostureSays) {
  constexpr double kClose = 3e-4;  // rad: float32 against double
  const auto task = make_task("reach", {.n_envs = 4});
  sim::Scene& scene = dynamic_cast<SceneTask&>(*task).scene();
  const sim::Kinematics& kinematics = scene.kinematics();
  const int grip = kinematics.site("grip");
  const auto nq = static_cast<std::size_t>(scene.info().nq), nu = static_cast<std::size_t>(scene.info().nu);
  const std::array<double, 7> rest{0, 0.4936944104598655, 0, 1.7594127129703006, 0, 0.8884855301596268, 0};
  const std::vector<int> dofs{0, 1, 2, 3, 4, 5, 6};
  begin(*task, 5);
  int outside = 0;
  for (int t = 0; t < 40; ++t) {
    std::vector<float> actions;
    // Down and outward, until the table and the box's side are reached.
    for (int env = 0; env < 4; ++env)
      for (const float x : {env % 2 == 0 ? 1.0f : 0.2f, 0.3f * static_cast<float>(env - 1), env < 2 ? -1.0f : 0.7f})
        actions.push_back(x);
    const std::vector<float> before = scene.get_qpos();
    task->step(make_view(actions.data(), {4, 3}));
    const std::vector<float> ctrl = scene.get_ctrl();
    for (std::size_t e = 0; e < 4; ++e) {
      const std::vector<double> q(before.begin() + static_cast<std::ptrdiff_t>(e * nq),
                                  before.begin() + static_cast<std::ptrdiff_t>((e + 1) * nq));
      const sim::Kinematics::Posture posture = kinematics.at(q);
      const sim::Kinematics::Pose now = posture.site_pose(grip);
      std::vector<double> jacobian(6 * 7);
      posture.site_jacobian(grip, dofs, jacobian);
      const double low[] = {0.25, -0.4, 0.012}, high[] = {0.72, 0.4, 0.45};
      std::array<double, 6> error{};
      for (std::size_t i = 0; i < 3; ++i) {
        const double wanted = now.pos[i] + 0.03 * static_cast<double>(actions[3 * e + i]);
        outside += wanted < low[i] || wanted > high[i];
        error[i] = std::clamp(std::clamp(wanted, low[i], high[i]) - now.pos[i], -0.03, 0.03);
      }
      // Pointing down: x ahead, y to the right, z down.
      const Mat3 down{1, 0, 0, 0, -1, 0, 0, 0, -1};
      const Vec3 turn = rotation_vector(down * transpose(Mat3(now.rot)));
      for (std::size_t i = 0; i < 3; ++i) error[3 + i] = turn[i];
      std::array<double, 7> to_rest, change;
      for (std::size_t j = 0; j < 7; ++j) to_rest[j] = rest[j] - q[j];
      differential_ik({.damping = 0.01, .posture = 0.05, .most_turn = 10}, jacobian, 7, 7, error, to_rest, change);
      for (std::size_t j = 0; j < 7; ++j) {
        const std::array<double, 2>& range = scene.info().joints[j].range;
        const double target = std::clamp(q[j] + std::clamp(change[j], -0.4, 0.4), range[0], range[1]);
        EXPECT_NEAR(static_cast<double>(ctrl[e * nu + j]), target, kClose)
            << "step " << t << " environment " << e << " joint " << j;
      }
    }
  }
  EXPECT_GT(outside, 40) << "the box was hardly met";
}

constexpr const char* kReaching = R"yaml(
include: library:/reach.yaml
observations:
  policy:
    quat: site_quaternion("grip")
    held: {formula: goal.quaternion}
    contact: {formula: contact("goal")}
)yaml";

TEST_F(TaskFileFrames, EpisodesBeginWithTheFrameWhereItIsDrawn) {
  constexpr float kClose = 2e-5f;  // m: float32
  const auto task = make_task("reach", {.n_envs = 64});
  begin(*task, 40);
  const std::vector<float> first(observed(*task, "eef_pos").begin(), observed(*task, "eef_pos").end());
  const double middle[] = {0.5, 0, 0.2}, half[] = {0.1, 0.15, 0.08};
  std::set<float> different;
  for (int e = 0; e < 64; ++e) {
    // As the event's name and the episode's seed say, and no limit of a joint keeps it from there.
    const RandomStream seed(40 + static_cast<std::uint64_t>(e), RandomPurpose::kEnvironment, 0, 0);
    const std::uint64_t key = (std::uint64_t{seed.bits(1)} << 32) | seed.bits(0);
    const RandomStream draws(key, RandomPurpose::kEnvironment, fnv1a("place_hand") & 0xffffffff, 0);
    for (std::size_t i = 0; i < 3; ++i) {
      const double drawn = middle[i] - half[i] + 2 * half[i] * static_cast<double>(draws.uniform(i));
      EXPECT_NEAR(first[3 * static_cast<std::size_t>(e) + i], static_cast<float>(drawn), kClose) << e << " " << i;
    }
    different.insert(first[3 * static_cast<std::size_t>(e)]);
  }
  EXPECT_EQ(different.size(), 64u);
  // Alone and in another place it is the same.
  const auto alone = make_task("reach", {.n_envs = 3, .engine = "mujoco"});
  const std::int32_t env[] = {2};
  const std::uint64_t seed[] = {47};
  alone->reset(env, seed);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(observed(*alone, "eef_pos")[6 + i], first[21 + i], kClose);
}

TEST_F(TaskFileFrames, AFrameThatIsPutSomewhereKeepsItsOrientationAndServosHoldIt) {
  const auto task = make_task(write(kReaching), {.n_envs = 4, .overrides = {"horizon=20"}});
  begin(*task, 3);
  std::vector<float> none(12);
  for (int t = 0; t < 10; ++t) {
    for (std::size_t e = 0; e < 4; ++e) {
      // Half a turn about x, whichever sign.
      const std::span<const float> quat = observed(*task, "quat").subspan(4 * e, 4);
      EXPECT_NEAR(std::abs(quat[1]), 1, 2e-3) << t;
      EXPECT_NEAR(quat[0], 0, 2e-2) << t;
    }
    task->step(make_view(none.data(), {4, 3}));
  }
}

TEST_F(TaskFileFrames, AMarkerTouchesNothingAndStandsWhereItsEventPutsIt) {
  // Under the table's top, where a ball that collides would be thrown out.
  const auto task = make_task(write(std::string(kReaching) + R"yaml(
scene: {goal: {pos: [0.5, 0, -0.01]}}
events: {place_goal: {pose_range: {x: [-0.14, 0.14], y: [0, 0], z: [0, 0], yaw: [0.5, 0.5]}}}
)yaml"),
                              {.n_envs = 8});
  begin(*task, 9);
  const std::vector<float> goal(observed(*task, "goal_pos").begin(), observed(*task, "goal_pos").end());
  std::vector<float> none(24);
  for (int t = 0; t < 5; ++t) task->step(make_view(none.data(), {8, 3}));
  sim::Scene& scene = dynamic_cast<SceneTask&>(*task).scene();
  EXPECT_EQ(scene.info().nmocap, 1);
  std::set<float> different;
  for (std::size_t e = 0; e < 8; ++e) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(observed(*task, "goal_pos")[3 * e + i], goal[3 * e + i]);
    EXPECT_LE(std::abs(goal[3 * e] - 0.5f), 0.1401f);
    EXPECT_FLOAT_EQ(goal[3 * e + 2], -0.01f);
    EXPECT_NEAR(observed(*task, "held")[4 * e], std::cos(0.25), 1e-6);
    EXPECT_NEAR(observed(*task, "held")[4 * e + 3], std::sin(0.25), 1e-6);
    EXPECT_EQ(observed(*task, "contact")[e], 0);
    EXPECT_TRUE(scene.engine().contacts(static_cast<int>(e)).empty());
    different.insert(goal[3 * e]);
  }
  EXPECT_EQ(different.size(), 8u);
}

/// Isaac Lab's reach: the command is a pose in the base's frame.
TEST_F(TaskFileFrames, ErrorsOfAPoseCommandAreThoseOfTheLinkInTheBasesFrame) {
  std::ofstream(folder_.path() / "arm.xml") << R"(
<mujoco model="arm"><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
  <body name="base" pos="1 2 0.5" euler="0.2 -0.3 0.9"><geom type="box" size="0.05 0.05 0.05"/>
    <body name="fore" pos="0 0 0.3" euler="0.1 0.2 0"><joint name="turn" axis="0 0.6 0.8" range="-2 2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="hand" pos="0.3 0 0"><geom size="0.04"/></body></body></body></worldbody>
  <actuator><position joint="turn" kp="5" kv="2"/></actuator></mujoco>)";
  const std::string link = "link: hand, command_name: pose", per = "per_second: false";
  const auto task = make_task(write(format(R"yaml(
scene: {{robot: {{mjcf: arm.xml}}}}
simulation: {{decimation: 10, episode_length_s: 1}}
actions: {{turn: {{type: joint_position}}}}
commands:
  pose: {{type: uniform_pose, resampling_time_range: [5, 5], ranges: {{pos_x: [-0.3, 0.3], pos_y: [-0.3, 0.3], pos_z: [0.2, 0.6], roll: [-3, 3], pitch: [-1, 1], yaw: [-3, 3]}}}}
observations: {{policy: {{command: command.pose}}}}
rewards:
  position: {{term: position_command_error, {0}, {1}}}
  near: {{term: position_command_error_tanh, {0}, std: 0.2, {1}}}
  orientation: {{term: orientation_command_error, {0}, {1}}}
events: {{joints: {{type: reset_joints_by_offset, position_range: [-1, 1]}}}}
)yaml",
                                           link, per)),
                              {.n_envs = 8});
  begin(*task, 4);
  const std::vector<float> command(observed(*task, "command").begin(), observed(*task, "command").end());
  std::vector<float> some(8, 0.3f);
  task->step(make_view(some.data(), {8, 1}));
  sim::Scene& scene = dynamic_cast<SceneTask&>(*task).scene();
  const std::vector<float> qpos = scene.get_qpos();
  const int base = scene.info().link("base"), hand = scene.info().link("hand");
  for (std::size_t e = 0; e < 8; ++e) {
    const double q[] = {static_cast<double>(qpos[e])};
    const sim::Kinematics::Posture posture = scene.kinematics().at(q);
    const sim::Kinematics::Pose b = posture.link_pose(base), h = posture.link_pose(hand);
    double square = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      double wanted = b.pos[i];
      for (std::size_t k = 0; k < 3; ++k) wanted += b.rot[3 * i + k] * static_cast<double>(command[7 * e + k]);
      square += (wanted - h.pos[i]) * (wanted - h.pos[i]);
    }
    // cos of half the angle between two orientations is the product of their quaternions' numbers.
    const std::array<double, 4>& a = b.quat;
    const double c[] = {static_cast<double>(command[7 * e + 3]), static_cast<double>(command[7 * e + 4]),
                        static_cast<double>(command[7 * e + 5]), static_cast<double>(command[7 * e + 6])};
    const double wanted[] = {
        a[0] * c[0] - a[1] * c[1] - a[2] * c[2] - a[3] * c[3], a[0] * c[1] + a[1] * c[0] + a[2] * c[3] - a[3] * c[2],
        a[0] * c[2] - a[1] * c[3] + a[2] * c[0] + a[3] * c[1], a[0] * c[3] + a[1] * c[2] - a[2] * c[1] + a[3] * c[0]};
    double cosine = 0;
    for (std::size_t i = 0; i < 4; ++i) cosine += wanted[i] * h.quat[i];
    const std::span<const float> terms = task->reward_terms().span<float>().subspan(3 * e, 3);
    EXPECT_NEAR(static_cast<double>(terms[0]), std::sqrt(square), 1e-5) << e;
    EXPECT_NEAR(static_cast<double>(terms[1]), 1 - std::tanh(std::sqrt(square) / 0.2), 1e-5) << e;
    EXPECT_NEAR(static_cast<double>(terms[2]), 2 * std::acos(std::min(1.0, std::abs(cosine))), 2e-4) << e;
  }
}

TEST_F(TaskFileFrames, FaultsOfTheirsAreNamedWithARemedy) {
  const struct {
    std::string text;
    const char* says;
  } kCases[] = {
      {"actions: {hand: {posture: 2}}", "posture is 2: a share from 0 to 1"},
      {"actions: {hand: {command_type: pose}}", "keep_orientation is of `command_type: position`"},
      {"actions: {hand: {workspace: {w: [0, 1]}}}", "is unknown here"},
      {"actions: {hand: {use_relative_mode: false, keep_orientation: false}}", "workspace is of use_relative_mode"},
      {"actions: {hand: {names: [dx, dy]}}", "names has 2 names, and the action 3 numbers"},
      {"events: {place_hand: {site: null}}", "needs `site` or `link`: the frame that it puts somewhere"},
      {"events: {place_hand: {site: gripp}}", "no site matches 'gripp', did you mean 'grip'?"},
      {"events: {place_goal: {velocity_range: {x: [0, 1]}}}", "goal is a marker: it has no velocity"},
      {"events: {place_goal: {entity: robot}}", "robot is fixed: it begins where the scene has it"},
      {"success: {ends_episode: 1}", "success.ends_episode is 1: true or false"},
      {"scene: {goal: {marker: 1}}", "has the wrong type"},
  };
  for (const auto& [text, says] : kCases) {
    const std::string said = message_of([&] { make_task(write("include: library:/reach.yaml\n" + text + "\n"), {}); });
    EXPECT_NE(said.find(says), std::string::npos) << text << "\nsays: " << said << "\nwanted: " << says;
  }
}

}  // namespace
}  // namespace cohort::tasks
