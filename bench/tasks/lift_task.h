/// robosuite's task Lift on its own model, as a task of ours: what rollouts.cpp measures beside robosuite.
#pragma once
#include <memory>
#include <string>

#include "tasks/task.h"

namespace cohort::bench {

/// mjcf: the model's text as robosuite 1.5 composes it for one Panda (rollouts.py writes it). Actions are those of its
/// OSC_POSE and of the gripper, seven numbers in [-1, 1]; the torques are computed anew in each of a control step's 25
/// timesteps. Observations are robosuite's object and proprioceptive ones but for the joints' accelerations; the reward
/// is its dense one but for the bonus of a grasp.
std::unique_ptr<tasks::Task> make_lift_task(const tasks::TaskSettings& settings, const std::string& mjcf);

}  // namespace cohort::bench
