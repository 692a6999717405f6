/// A task whose commands, such as the velocity that a robot is to have, can be given by a person instead of being drawn.
///
///   if (auto* commanded = dynamic_cast<TakesCommands*>(task.get()); commanded != nullptr && !commanded->commands().empty())
///     commanded->hold_command(env, 0, std::vector<float>{0.5f, 0, 0});   // until release_command(env, 0)
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort::tasks {

/// A command and the ranges that the task draws it from.
struct CommandShape {
  std::string name;
  std::vector<std::string> parts;  ///< "lin_vel_x" (m/s), "ang_vel_z" (rad/s), "pos_x" (m), "roll" (rad), ...
  std::vector<float> low, high;    ///< as many
};

class TakesCommands {
 public:
  virtual ~TakesCommands() = default;
  /// Empty: the task has none, or its setting commands_by_hand is off.
  virtual std::span<const CommandShape> commands() const = 0;
  /// The command of an environment is `value`, a number for each part, from its next step on, over resets too.
  virtual void hold_command(int env, std::size_t command, std::span<const float> value) = 0;
  /// It is drawn again.
  virtual void release_command(int env, std::size_t command) = 0;
  /// What the environment is told now, a number for each part.
  virtual std::vector<float> command(int env, std::size_t command) const = 0;
};

}  // namespace cohort::tasks
