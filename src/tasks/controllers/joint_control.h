/// A gripper's commands, with the formulas and constants of robosuite 1.4 (robosuite/models/grippers/panda_gripper.py).
#pragma once
#include <algorithm>
#include <span>

namespace cohort::tasks {

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
