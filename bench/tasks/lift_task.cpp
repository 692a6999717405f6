#include "lift_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "tasks/controllers/joint_control.h"
#include "tasks/controllers/operational_space.h"
#include "tasks/scene_task.h"

namespace cohort::bench {
namespace {

using namespace tasks;

constexpr int kTimesteps = 25;    // of 2 ms: 20 Hz
constexpr double kTable = 0.8;    // m, its top
constexpr double kLifted = 0.04;  // m over the table
constexpr double kGripperSpeed = 0.2 / kTimesteps;
constexpr std::array<double, 7> kRest{0, 0.19634954, 0, -2.61799388, 0, 2.94159265, 0.78539816};

SceneTaskSetup lift_setup(const TaskSettings& settings, const std::string& mjcf) {
  SceneTaskSettings own;
  own.horizon = 1000, own.end_on_success = false;
  SceneTaskSetup setup = read_settings(settings, own);
  TaskSpec& spec = setup.spec;
  spec.name = "lift";
  spec.summary = "robosuite's: lift a cube off the table";
  spec.instruction = "lift the cube";
  spec.observations = {{"joint_pos", {7}, "rad", ""},
                       {"joint_pos_cos", {7}, "1", ""},
                       {"joint_pos_sin", {7}, "1", ""},
                       {"joint_vel", {7}, "rad/s", ""},
                       {"eef_pos", {3}, "m", ""},
                       {"eef_rot", {9}, "1", "row-major"},
                       {"gripper_qpos", {2}, "m", ""},
                       {"gripper_qvel", {2}, "m/s", ""},
                       {"cube_pos", {3}, "m", ""},
                       {"cube_quat", {4}, "1", ""},
                       {"gripper_to_cube_pos", {3}, "m", ""}};
  spec.action = {.names = {"dx", "dy", "dz", "rx", "ry", "rz", "grip"},
                 .low = std::vector<float>(7, -1),
                 .high = std::vector<float>(7, 1),
                 .unit = "OSC_POSE"};
  spec.control_period = 0.05;
  spec.reward_terms = {"reach", "lift"};
  setup.controls = kTimesteps;
  setup.mjcf = mjcf;
  return setup;
}

class Lift final : public SceneTask {
 public:
  Lift(const TaskSettings& settings, const std::string& mjcf)
      : SceneTask(settings, lift_setup(settings, mjcf)), kinematics_(scene().kinematics()) {
    const sim::ModelInfo& model = scene().info();
    // The robot's hinges and slides come first: seven of the arm, two of the fingers.
    std::vector<sim::JointInfo> joints;
    for (const sim::JointInfo& joint : model.joints)
      if (joint.type == sim::JointType::kHinge || joint.type == sim::JointType::kSlide) joints.push_back(joint);
    COHORT_THROW_UNLESS(joints.size() == 9 && model.nu == 9, "{} joints and {} actuators: this is no Lift of one Panda",
                        joints.size(), model.nu);
    std::vector<std::string> arm_joints;
    for (std::size_t i = 0; i < 7; ++i) arm_joints.push_back(joints[i].name);
    arm_ = find_arm(kinematics_, model, "gripper0_right_grip_site", arm_joints);
    const sim::JointInfo& cube = model.joints[static_cast<std::size_t>(model.joint("cube_joint0"))];
    cube_ = static_cast<std::size_t>(cube.qpos);
    for (std::size_t i = 0; i < 9; ++i) {
      qpos_[i] = static_cast<std::size_t>(joints[i].qpos);
      qvel_[i] = static_cast<std::size_t>(joints[i].dof);
    }
    envs_.resize(static_cast<std::size_t>(n_envs()));
  }

 private:
  struct Env {
    ArmReading reading;
    OperationalSpaceControl::Memory memory;
    std::array<double, 7> bias;
    std::array<double, 2> grip;
    std::int64_t last_step = -1;  ///< that has set its goal
  };
  Env& of(int env) { return envs_[static_cast<std::size_t>(env)]; }

  void start(int env, const RandomStream& random, Start& start) override {
    for (std::size_t i = 0; i < 7; ++i)
      start.qpos[qpos_[i]] = kRest[i] + 0.02 * static_cast<double>(random.normal(100 + i));
    start.qpos[qpos_[7]] = 0.020833, start.qpos[qpos_[8]] = -0.020833;
    const auto between = [&](std::uint64_t i, double low, double high) {
      return low + (high - low) * static_cast<double>(random.uniform(i));
    };
    const double yaw = between(2, -3.14159265, 3.14159265);
    const double pose[7] = {between(0, -0.03, 0.03), between(1, -0.03, 0.03), kTable + 0.0318, std::cos(yaw / 2), 0, 0,
                            std::sin(yaw / 2)};
    std::copy(pose, pose + 7, start.qpos.begin() + static_cast<std::ptrdiff_t>(cube_));
    of(env).grip = {}, of(env).last_step = -1;
  }

  void read(Env& e, const EnvState& now) { read_arm(kinematics_, arm_, now.qpos, now.qvel, e.reading, e.bias); }

  void control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) override {
    Env& e = of(env);
    read(e, now);
    if (e.last_step < 0) control_.begin(e.memory, e.reading);
    if (e.last_step != now.step) {
      std::array<double, 6> wanted;
      for (std::size_t i = 0; i < 6; ++i) wanted[i] = static_cast<double>(action[i]);
      control_.set_goal(e.memory, e.reading, wanted);
      e.last_step = now.step;
    }
    control_.torques(e.memory, e.reading, e.bias, ctrl.first(7));
    constexpr std::array<double, 2> kClosing{-1, 1};
    move_gripper(static_cast<double>(action[6]), kGripperSpeed, kClosing, e.grip);
    ctrl[7] = gripper_target(e.grip[0], 0, 0.04), ctrl[8] = gripper_target(e.grip[1], -0.04, 0);
  }

  void refresh(int env, const EnvState& now) override { read(of(env), now); }

  void observe(int env, const EnvState& now, ObservationRows& out) override {
    const ArmReading& r = of(env).reading;
    for (std::size_t i = 0; i < 7; ++i) {
      const double q = now.qpos[qpos_[i]];
      out[0][i] = static_cast<float>(q);
      out[1][i] = static_cast<float>(std::cos(q)), out[2][i] = static_cast<float>(std::sin(q));
      out[3][i] = static_cast<float>(now.qvel[qvel_[i]]);
    }
    const double* cube = now.qpos.data() + cube_;
    out.put(4, {r.pos[0], r.pos[1], r.pos[2]});
    for (std::size_t i = 0; i < 9; ++i) out[5][i] = static_cast<float>(r.rot[i]);
    out.put(6, {now.qpos[qpos_[7]], now.qpos[qpos_[8]]});
    out.put(7, {now.qvel[qvel_[7]], now.qvel[qvel_[8]]});
    out.put(8, {cube[0], cube[1], cube[2]});
    out.put(9, {cube[3], cube[4], cube[5], cube[6]});
    out.put(10, {cube[0] - r.pos[0], cube[1] - r.pos[1], cube[2] - r.pos[2]});
  }

  Judgement judge(int env, const EnvState& now, std::span<float> terms) override {
    const double* cube = now.qpos.data() + cube_;
    const bool lifted = cube[2] > kTable + kLifted;
    if (!terms.empty()) {
      const Vec3 way = Vec3{cube[0], cube[1], cube[2]} - of(env).reading.pos;
      terms[0] = lifted ? 0.0f : static_cast<float>((1 - std::tanh(10 * norm(way))) / 2.25);
      terms[1] = lifted ? 1.0f : 0.0f;
    }
    return {.success = lifted};
  }

  const sim::Kinematics& kinematics_;
  ArmIndices arm_;
  OperationalSpaceControl control_;
  std::size_t cube_ = 0;
  std::array<std::size_t, 9> qpos_{}, qvel_{};
  std::vector<Env> envs_;
};

}  // namespace

std::unique_ptr<tasks::Task> make_lift_task(const tasks::TaskSettings& settings, const std::string& mjcf) {
  return std::make_unique<Lift>(settings, mjcf);
}

}  // namespace cohort::bench
