// Operational-space control beside what robosuite computed in LIBERO's environments (COHORT_SHARED/data/libero).
#include "tasks/controllers/operational_space.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "sim/host/scene.h"
#include "tasks/controllers/joint_control.h"
#include "tasks/npz.h"

namespace cohort::tasks {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr double kTorqueTolerance = 1e-6;  // N m

std::vector<fs::path> recorded_tasks() {
  const char* shared = std::getenv("COHORT_SHARED");
  const fs::path folder = fs::path(shared ? shared : COHORT_SOURCE_DIR "/../shared") / "data" / "libero";
  std::vector<fs::path> tasks;
  if (!fs::exists(folder)) return tasks;
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "task.json")) tasks.push_back(entry.path());
  return tasks;
}

template <std::size_t N>
std::array<double, N> flat(const Json& json) {
  std::array<double, N> numbers{};
  std::size_t next = 0;
  for (const Json& item : json) {
    if (item.is_array()) {
      for (const Json& x : item) numbers.at(next++) = x.get<double>();
    } else {
      numbers.at(next++) = item.get<double>();
    }
  }
  return numbers;
}

std::unique_ptr<sim::Scene> scene_of(const fs::path& task) {
  auto scene = std::make_unique<sim::Scene>(sim::SceneOptions{.engine = sim::EngineKind::kMujoco});
  scene->add_entity(sim::Mjcf{(task / "scene.xml").string()}, "scene");
  scene->build(1);
  return scene;
}

ArmIndices arm_of(const sim::Scene& scene) {
  std::vector<std::string> joints;
  for (int i = 1; i <= kArmJoints; ++i) joints.push_back(format("robot0_joint{}", i));
  return find_arm(scene.kinematics(), scene.info(), "gripper0_grip_site", joints);
}

template <std::size_t N>
double largest_difference(const std::array<double, N>& a, const std::array<double, N>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < N; ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(OperationalSpace, ReadingsAndTorquesAreRobosuites) {
  const std::vector<fs::path> tasks = recorded_tasks();
  if (tasks.empty()) GTEST_SKIP() << "COHORT_SHARED names no folder with data/libero";
  const OperationalSpaceControl control;
  int compared = 0;
  for (const fs::path& task : tasks) {
    const auto scene = scene_of(task);
    const sim::Kinematics& kinematics = scene->kinematics();
    const ArmIndices arm = arm_of(*scene);
    for (const char* name : {"osc_mj400_0.json", "osc_mj400_1.json", "osc_mj237_0.json", "osc_mj237_1.json"}) {
      const Json file = parse_json<Json>(read_file(task / name));
      for (const Json& sample : file.at("samples")) {
        const auto qpos = sample.at("qpos").get<std::vector<double>>(),
                   qvel = sample.at("qvel").get<std::vector<double>>();
        ArmReading given;
        given.pos = flat<3>(sample.at("ee_pos"));
        given.rot = flat<9>(sample.at("ee_ori_mat"));
        given.jacobian = flat<42>(sample.at("jacobian"));
        given.mass = flat<49>(sample.at("mass_matrix"));
        given.position = flat<7>(sample.at("joint_pos")), given.velocity = flat<7>(sample.at("joint_vel"));
        ArmReading read;
        std::array<double, 7> bias{}, torques{};
        read_arm(kinematics, arm, qpos, qvel, read, bias);
        const bool of_the_reset = sample.at("step") == 0 && sample.at("substep") == 0;
        if (!of_the_reset) {
          EXPECT_LT(largest_difference(read.pos, given.pos), 1e-9);
          EXPECT_LT(largest_difference(read.rot, given.rot), 1e-9);
          EXPECT_LT(largest_difference(read.jacobian, given.jacobian), 1e-9);
          EXPECT_LT(largest_difference(read.mass, given.mass), 1e-9);
        }
        EXPECT_LT(largest_difference(bias, flat<7>(sample.at("qfrc_bias"))), 1e-8);
        OperationalSpaceControl::Memory memory;
        memory.goal_pos = flat<3>(sample.at("goal_pos"));
        memory.goal_rot = flat<9>(sample.at("goal_ori"));
        memory.posture = flat<7>(sample.at("initial_joint"));
        control.unlimited_torques(memory, of_the_reset ? given : read, bias, torques);
        EXPECT_LT(largest_difference(torques, flat<7>(sample.at("torques_unclipped"))), kTorqueTolerance)
            << task << " " << name << " step " << sample.at("step") << " substep " << sample.at("substep");
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 7 * 4 * 10);
}

// In closed loop with the engine `mujoco`, from the first initial state on, until something is touched.
TEST(OperationalSpace, TheRecordedTorquesComeOutInClosedLoop) {
  const std::vector<fs::path> tasks = recorded_tasks();
  if (tasks.empty()) GTEST_SKIP() << "COHORT_SHARED names no folder with data/libero";
  constexpr std::size_t kSubsteps = 25, kControls = 9;
  const OperationalSpaceControl control;
  for (const fs::path& task : tasks) {
    const auto scene = scene_of(task);
    const sim::Kinematics& kinematics = scene->kinematics();
    const ArmIndices arm = arm_of(*scene);
    const auto trace = test::read_npz((task / "trace_mj400_0.npz").string());
    const Json controller = parse_json<Json>(read_file(task / "task.json")).at("controller");
    sim::Engine& engine = scene->engine();
    const ArrayView qpos_view = engine.view(sim::Field::kQpos), qvel_view = engine.view(sim::Field::kQvel),
                    ctrl_view = engine.view(sim::Field::kCtrl);
    const auto nq = static_cast<std::size_t>(qpos_view.shape[1]), nv = static_cast<std::size_t>(qvel_view.shape[1]);
    auto* qpos = static_cast<double*>(qpos_view.data);
    auto* qvel = static_cast<double*>(qvel_view.data);
    auto* ctrl = static_cast<double*>(ctrl_view.data);
    ASSERT_EQ(ctrl_view.shape[1], static_cast<std::int64_t>(kControls));
    const std::vector<double>& start = trace.at("init_state").values;
    ASSERT_EQ(start.size(), 1 + nq + nv);

    // What the controller read at the reset, before the initial state was set: it stays for the first torques.
    std::vector<double> reset_qpos(scene->info().qpos0), still(nv, 0.0);
    const auto posture = controller.at("at_reset").at("initial_joint").get<std::vector<double>>();
    for (std::size_t j = 0; j < posture.size(); ++j) reset_qpos[arm.qpos[j]] = posture[j];
    for (const char* finger : {"gripper0_finger_joint1", "gripper0_finger_joint2"}) {
      const sim::JointInfo& joint = scene->info().joints[static_cast<std::size_t>(scene->info().joint(finger))];
      reset_qpos[static_cast<std::size_t>(joint.qpos)] = 0;
    }
    ArmReading reading;
    std::array<double, 7> bias{}, torques{};
    read_arm(kinematics, arm, reset_qpos, still, reading, {});
    OperationalSpaceControl::Memory memory;
    control.begin(memory, reading);

    std::copy_n(start.begin() + 1, nq, qpos);
    std::copy_n(start.begin() + 1 + static_cast<std::ptrdiff_t>(nq), nv, qvel);
    std::array<double, 2> grip{};
    constexpr std::array<double, 2> kClosing{-1, 1};
    const std::vector<double>&actions = trace.at("action").values, &expected = trace.at("ctrl").values,
          &goals = trace.at("goal_ori").values;
    double largest = 0, goal = 0;
    constexpr std::size_t kFree = 12;  // control steps in which nothing of the robot touches anything
    for (std::size_t step = 0; step < kFree; ++step) {
      const std::span<const double> action(actions.data() + step * 7, 6);
      for (std::size_t k = 0; k < kSubsteps; ++k) {
        const bool stale = step == 0 && k == 0;
        ArmReading now;
        read_arm(kinematics, arm, {qpos, nq}, {qvel, nv}, now, bias);
        if (!stale) reading = now;
        if (k == 0) control.set_goal(memory, reading, action);
        control.torques(memory, reading, bias, torques);
        move_gripper(actions[step * 7 + 6], kGripperSpeed, kClosing, grip);
        for (std::size_t j = 0; j < 7; ++j) ctrl[j] = torques[j];
        ctrl[7] = gripper_target(grip[0], 0, 0.04), ctrl[8] = gripper_target(grip[1], -0.04, 0);
        for (std::size_t j = 0; j < kControls; ++j)
          largest = std::max(largest, std::abs(ctrl[j] - expected[(step * kSubsteps + k) * kControls + j]));
        engine.step(1);
      }
      for (std::size_t i = 0; i < 9; ++i) goal = std::max(goal, std::abs(memory.goal_rot[i] - goals[step * 9 + i]));
    }
    EXPECT_LT(largest, kTorqueTolerance) << task;
    EXPECT_LT(goal, 1e-9) << task;
    std::printf("%s: torques within %.1e N m, goals within %.1e\n", task.filename().c_str(), largest, goal);
  }
}

TEST(JointControl, AGripperTakesFourControlStepsFromTheMiddleToAnEnd) {
  std::array<double, 2> command{};
  constexpr std::array<double, 2> kClosing{-1, 1};
  for (int k = 0; k < 99; ++k) move_gripper(0.3, kGripperSpeed, kClosing, command);
  EXPECT_NEAR(command[0], -0.99, 1e-12);
  for (int k = 0; k < 5; ++k) move_gripper(1, kGripperSpeed, kClosing, command);
  EXPECT_EQ(command[0], -1);
  EXPECT_EQ(command[1], 1);
  move_gripper(0, kGripperSpeed, kClosing, command);
  EXPECT_EQ(command[1], 1);
  EXPECT_DOUBLE_EQ(gripper_target(command[0], 0, 0.04), 0);
  EXPECT_DOUBLE_EQ(gripper_target(command[1], 0, 0.04), 0.04);
}

}  // namespace
}  // namespace cohort::tasks
