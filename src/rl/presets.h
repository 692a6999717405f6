/// Settings of PPO for tasks that were tried: their entries bring them (tasks/registry.h).
#pragma once
#include <string>

#include "rl/run.h"

namespace cohort::rl {

/// The defaults of `cohort train ppo task=NAME`: rsl_rl's, but for what the task's entry says
/// (TaskEntry::ppo). Throws Error where that is no setting of PPO.
PpoRunSettings preset(const std::string& task);

}  // namespace cohort::rl
