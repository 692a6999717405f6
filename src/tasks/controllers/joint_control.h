/// Joint torques for wanted positions or velocities, and a gripper's commands. Formulas and constants of robosuite 1.4
/// (robosuite/controllers/joint_pos.py, joint_vel.py; models/grippers/panda_gripper.py).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "tasks/controllers/operational_space.h"

namespace cohort::tasks {

struct JointPositionSettings {
  double stiffness = 50;     ///< 1/s²
  double damping_ratio = 1;  ///< of the critical
  double scale = 0.05;       ///< rad for an action of 1
};
/// Where an action (7, in [-1, 1]) wants the joints: relative to where they are.
inline void joint_position_goal(const JointPositionSettings& settings, const ArmReading& now,
                                std::span<const double> action, std::span<double> goal) {
  for (std::size_t i = 0; i < kArmJoints; ++i)
    goal[i] = now.position[i] + settings.scale * std::clamp(action[i], -1.0, 1.0);
}
/// M (kp (goal - q) - kd qd) + bias, N m.
inline void joint_position_torques(const JointPositionSettings& settings, const ArmReading& now,
                                   std::span<const double> goal, std::span<const double> bias, std::span<double> out) {
  const double kp = settings.stiffness, kd = 2 * std::sqrt(kp) * settings.damping_ratio;
  for (std::size_t i = 0; i < kArmJoints; ++i) {
    out[i] = bias[i];
    for (std::size_t j = 0; j < kArmJoints; ++j)
      out[i] += now.mass[i * kArmJoints + j] * (kp * (goal[j] - now.position[j]) - kd * now.velocity[j]);
  }
}

/// Gain of a joint's velocity error: in N m s/rad.
inline constexpr std::array<double, kArmJoints> kJointVelocityGain{8, 7, 6, 4, 2, 0.5, 0.1};
/// gain (wanted - qd) + bias, N m.
inline void joint_velocity_torques(std::span<const double> gain, const ArmReading& now, std::span<const double> wanted,
                                   std::span<const double> bias, std::span<double> out) {
  for (std::size_t i = 0; i < kArmJoints; ++i) out[i] = gain[i] * (wanted[i] - now.velocity[i]) + bias[i];
}

/// A parallel gripper whose fingers are position servos: an action's sign moves the command by `speed` of half the
/// range in each timestep. command: (fingers) in [-1, 1], 0 at a reset; sign: of each finger for a closing action.
inline constexpr double kGripperSpeed = 0.01;
inline void move_gripper(double action, double speed, std::span<const double> sign, std::span<double> command) {
  const double way = action > 0 ? speed : action < 0 ? -speed : 0;
  for (std::size_t i = 0; i < command.size(); ++i) command[i] = std::clamp(command[i] + sign[i] * way, -1.0, 1.0);
}
/// The servo's target for a command.
inline double gripper_target(double command, double lower, double upper) {
  return 0.5 * (upper + lower) + 0.5 * (upper - lower) * command;
}

}  // namespace cohort::tasks
