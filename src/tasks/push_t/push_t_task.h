/// Push-T (tasks/push_t/push_t.h) as a Task: "push-t".
#pragma once
#include <memory>

#include "tasks/task.h"

namespace cohort::tasks {

/// Observations state (5: agent x, y, block x, y, angle), agent_pos (2) and environment_state (16, the corners of both
/// boxes), in px; seeds are those of gym-pusht's resets. Actions are the agent's target; with the override
/// action=offset the target from where the agent is, which recordings call action_offset. beam=, depth= and push_speed=
/// are those of the planner (tasks/push_t/push_t_expert.h).
std::unique_ptr<Task> make_push_t_task(const TaskSettings& settings);

/// In a build without Chipmunk2D there is none, and this registers nothing.
void register_push_t();

}  // namespace cohort::tasks
