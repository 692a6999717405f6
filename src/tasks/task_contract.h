/// What a policy relies on besides the names and units of what it sees and gives (TaskSpec): how its actions become
/// joints of a robot, and what was done to the observations. Whoever runs the policy elsewhere has to do the same.
///
///   const TaskContract contract = task->contract();
///   contract.joint_names;          // {"fl_abduction", "fl_hip", ...}
///
/// An empty list: the task does not say, or has no such thing.
#pragma once
#include <limits>
#include <string>
#include <vector>

namespace cohort::tasks {

struct TaskContract {
  std::vector<std::string> joint_names;   ///< those that actuators drive, in the actuators' order
  std::vector<double> joint_stiffness;    ///< of each: N m/rad or N/m of its position servo; 0: none
  std::vector<double> joint_damping;      ///< of each: N m s/rad or N s/m of its servo
  std::vector<double> default_joint_pos;  ///< of each: rad or m, from which actions (and observed positions) count
  std::vector<double> action_scale;  ///< of each action: a joint's target is its default plus this times the action
  std::vector<std::string> command_names;  ///< observations that tell the robot what to do

  /// What was done to an observation before it is in the task's field: clipped, scaled, then put beside earlier moments.
  struct Term {
    std::vector<double> scale{};  ///< of each number, or one for all; empty: 1
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    int history = 0;  ///< moments that the field holds side by side; 0 or 1: the present one
  };
  std::vector<Term> observations;  ///< as many as TaskSpec::observations; empty: nothing was done to any
  bool clips_actions = true;       ///< to the bounds of ActionSpec, before anything else
};

}  // namespace cohort::tasks
