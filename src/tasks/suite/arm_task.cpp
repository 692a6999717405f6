#include "tasks/suite/arm_task.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/format.h"

namespace cohort::tasks {
namespace {

// m: where the hand may be.
constexpr Vec3 kLow{0.25, -0.40, 0.012}, kHigh{0.72, 0.40, 0.45};
constexpr DifferentialIkSettings kIk{.damping = 0.01, .posture = 0.05, .most_turn = 0.4};

/// Of a hand that points down, turned by yaw.
Mat3 pointing_down(double yaw) {
  const double c = std::cos(yaw), s = std::sin(yaw);
  return {c, s, 0, s, -c, 0, 0, 0, -1};
}

std::array<double, 6> pose_error(const Vec3& pos, const Mat3& rot, const Vec3& wanted_pos, const Mat3& wanted_rot) {
  const Vec3 shift = wanted_pos - pos;
  const Vec3 turn = rotation_vector(wanted_rot * transpose(rot));
  return {shift[0], shift[1], shift[2], turn[0], turn[1], turn[2]};
}

}  // namespace

ActionSpec hand_actions(const HandActions& actions) {
  ActionSpec spec;
  spec.names = {"dx", "dy", "dz"};
  if (actions.yaw) spec.names.push_back("dyaw");
  if (actions.grip) spec.names.push_back("grip");
  spec.low.assign(spec.names.size(), -1.0f);
  spec.high.assign(spec.names.size(), 1.0f);
  spec.unit = format("dx dy dz: {:g} m; dyaw: {:g} rad; grip: 1 closed, -1 open", kHandStep, kYawStep);
  return spec;
}

ArmTask::ArmTask(const TaskSettings& settings, SceneTaskSetup setup, const HandActions& actions)
    : SceneTask(settings, std::move(setup)),
      actions_(actions),
      kinematics_(scene().kinematics()),
      rest_(arm_posture(0.5, 0.2)) {
  const sim::ModelInfo& model = scene().info();
  const std::array<std::string, kArmJoints> joints{"j1", "j2", "j3", "j4", "j5", "j6", "j7"};
  arm_ = find_arm(kinematics_, model, "grip", joints);
  for (std::size_t i = 0; i < 7; ++i) {
    const std::string& name = joints[i];
    const sim::JointInfo& joint = model.joints[static_cast<std::size_t>(model.joint(name))];
    constexpr double kNone = std::numeric_limits<double>::infinity();
    arm_low_[i] = joint.limited ? joint.range[0] : -kNone;
    arm_high_[i] = joint.limited ? joint.range[1] : kNone;
    arm_ctrl_[i] = static_cast<std::size_t>(model.actuators[static_cast<std::size_t>(model.actuator(name))].ctrl);
  }
  const std::string fingers[2] = {"left", "right"};
  for (std::size_t i = 0; i < 2; ++i) {
    finger_qpos_[i] = qpos_of(fingers[i]);
    finger_ctrl_[i] =
        static_cast<std::size_t>(model.actuators[static_cast<std::size_t>(model.actuator(fingers[i]))].ctrl);
  }
  const auto n = static_cast<std::size_t>(n_envs());
  jacobians_.resize(n);
  rotations_.resize(n);
  hands_.resize(n);
}

std::size_t ArmTask::qpos_of(const std::string& joint) const {
  const sim::ModelInfo& model = scene().info();
  return static_cast<std::size_t>(model.joints[static_cast<std::size_t>(model.joint(joint))].qpos);
}
std::size_t ArmTask::qvel_of(const std::string& joint) const {
  const sim::ModelInfo& model = scene().info();
  return static_cast<std::size_t>(model.joints[static_cast<std::size_t>(model.joint(joint))].dof);
}

void ArmTask::place_hand(int env, const Vec3& pos, double yaw, double opening, Start& start) {
  const auto e = static_cast<std::size_t>(env);
  for (std::size_t i = 0; i < 7; ++i) start.qpos[arm_.qpos[i]] = rest_[i];
  for (std::size_t i = 0; i < 2; ++i) start.qpos[finger_qpos_[i]] = start.ctrl[finger_ctrl_[i]] = 0.5 * opening;
  // From the rest posture, which is near every place over the table: no step is cut short, and ten come within 1e-6 m.
  const Mat3 wanted = pointing_down(yaw);
  for (int k = 0; k < 30; ++k) {
    const sim::Kinematics::Posture posture = kinematics_.at(start.qpos);
    const sim::Kinematics::Pose now = posture.site_pose(arm_.site);
    const std::array<double, 6> error = pose_error(now.pos, now.rot, pos, wanted);
    double largest = 0;
    for (const double x : error) largest = std::max(largest, std::abs(x));
    if (largest < 1e-7) break;
    posture.site_jacobian(arm_.site, arm_.dofs, jacobians_[e]);
    std::array<double, 7> to_rest, change;
    for (std::size_t i = 0; i < 7; ++i) to_rest[i] = rest_[i] - start.qpos[arm_.qpos[i]];
    differential_ik({.damping = 0.01, .posture = 0, .most_turn = 1}, jacobians_[e], kArmJoints, kArmJoints, error,
                    to_rest, change);
    for (std::size_t i = 0; i < 7; ++i) start.qpos[arm_.qpos[i]] += change[i];
  }
  for (std::size_t i = 0; i < 7; ++i) start.ctrl[arm_ctrl_[i]] = start.qpos[arm_.qpos[i]];
}

void ArmTask::refresh(int env, const EnvState& now) {
  const auto e = static_cast<std::size_t>(env);
  const sim::Kinematics::Posture posture = kinematics_.at(now.qpos);
  posture.site_jacobian(arm_.site, arm_.dofs, jacobians_[e]);
  const sim::Kinematics::Pose grip = posture.site_pose(arm_.site);
  rotations_[e] = grip.rot;
  hands_[e] = {grip.pos, std::atan2(grip.rot[3], grip.rot[0]), now.qpos[finger_qpos_[0]] + now.qpos[finger_qpos_[1]]};
}

void ArmTask::control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) {
  const auto e = static_cast<std::size_t>(env);
  const Hand& hand = hands_[e];
  Vec3 target;
  for (std::size_t i = 0; i < 3; ++i) {
    target[i] = std::clamp(hand.pos[i] + kHandStep * static_cast<double>(action[i]), kLow[i], kHigh[i]);
    // One that is outside comes back gently.
    target[i] = std::clamp(target[i], hand.pos[i] - kHandStep, hand.pos[i] + kHandStep);
  }
  const double yaw = actions_.yaw ? hand.yaw + kYawStep * static_cast<double>(action[3])
                                  : hand.yaw + std::clamp(-hand.yaw, -kYawStep, kYawStep);
  const std::array<double, 6> error =
      pose_error(hand.pos, rotations_[e], target, pointing_down(std::clamp(yaw, -1.75, 1.75)));
  std::array<double, 7> posture, change;
  for (std::size_t i = 0; i < 7; ++i) posture[i] = rest_[i] - now.qpos[arm_.qpos[i]];
  differential_ik(kIk, jacobians_[e], kArmJoints, kArmJoints, error, posture, change);
  for (std::size_t i = 0; i < 7; ++i) {
    ctrl[arm_ctrl_[i]] = std::clamp(now.qpos[arm_.qpos[i]] + change[i], arm_low_[i], arm_high_[i]);
  }
  const double opening = actions_.grip ? 0.5 * kLargestOpening * (1 - static_cast<double>(action[actions_.yaw ? 4 : 3]))
                                       : actions_.opening;
  for (std::size_t i = 0; i < 2; ++i) ctrl[finger_ctrl_[i]] = 0.5 * opening;
}

void ArmTask::act(const Hand& hand, const Intent& intent, std::span<float> action) const {
  for (std::size_t i = 0; i < 3; ++i) {
    const double wanted = (intent.target[i] - hand.pos[i]) / kHandStep;
    action[i] = static_cast<float>(std::clamp(wanted, -intent.most_step, intent.most_step));
  }
  std::size_t next = 3;
  if (actions_.yaw) action[next++] = static_cast<float>(std::clamp(intent.turn / kYawStep, -1.0, 1.0));
  if (actions_.grip) action[next] = static_cast<float>(intent.grip);
}

bool ArmTask::holds(const Hand& hand, const CubeState& cube, double half_size) {
  const Vec3 d = cube.pos - hand.pos;
  return hand.opening < 2 * half_size + 0.005 && std::hypot(d[0], d[1]) < 0.02 && std::abs(d[2]) < 0.025;
}

ArmTask::Intent ArmTask::pick_and_put(const Hand& hand, const CubeState& cube, const Vec3& goal, double half_size,
                                      double near) {
  const Vec3 d = cube.pos - hand.pos, missing = goal - cube.pos;
  const double beside = std::hypot(d[0], d[1]), far = std::hypot(missing[0], missing[1]);
  const double turn = wrapped(cube.yaw - hand.yaw, kQuarterTurn);
  Intent intent;
  if (far < near && std::abs(missing[2]) < 0.004) {
    // Set down: let go, then leave.
    intent.target = hand.pos;
    intent.target[2] += hand.opening > 0.06 ? 0.12 : 0.0;
  } else if (holds(hand, cube, half_size)) {
    intent.grip = 1;
    // Up first, across when high enough, down where the goal is.
    const double across = std::max(ramp(cube.pos[2], goal[2] + 0.01, goal[2] + 0.06), 1 - ramp(far, 0.02, 0.05));
    const double height = goal[2] + 0.001 + 0.10 * ramp(far, 0.8 * near, 0.8 * near + 0.05);
    intent.target = hand.pos + across * Vec3{missing[0], missing[1], 0};
    intent.target[2] = hand.pos[2] + height - cube.pos[2];
  } else if (beside < 0.02 && std::abs(d[2]) < 0.02 &&
             (hand.opening < 0.07 || (beside < 0.008 && std::abs(d[2]) < 0.008 && std::abs(turn) < 0.12))) {
    intent.grip = 1;
    intent.target = cube.pos;
    intent.turn = turn;
  } else {
    intent.target = cube.pos;
    intent.target[2] += 0.09 * std::max(ramp(beside, 0.006, 0.03), ramp(std::abs(turn), 0.08, 0.3));
    intent.turn = turn;
  }
  return intent;
}

CubeState cube_state(const EnvState& now, std::size_t qpos, std::size_t qvel) {
  const double* q = now.qpos.data() + qpos;
  const double* v = now.qvel.data() + qvel;
  return {{q[0], q[1], q[2]}, yaw_of({q[3], q[4], q[5], q[6]}), {v[0], v[1], v[2]}};
}

void place_body(std::span<double> qpos, std::size_t address, const Vec3& pos, double yaw) {
  const double values[7] = {pos[0], pos[1], pos[2], std::cos(0.5 * yaw), 0, 0, std::sin(0.5 * yaw)};
  std::copy(values, values + 7, qpos.begin() + static_cast<std::ptrdiff_t>(address));
}

double ramp(double value, double from, double to) {
  return std::clamp((value - from) / (to - from), 0.0, 1.0);
}

double between(const RandomStream& random, std::uint64_t i, double low, double high) {
  return low + (high - low) * static_cast<double>(random.uniform(i));
}

}  // namespace cohort::tasks
