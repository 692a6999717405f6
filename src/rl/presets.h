/// Settings of PPO for tasks that were tried.
#pragma once
#include <string>

#include "rl/run.h"

namespace cohort::rl {

/// The defaults of `cohort train ppo task=NAME`: rsl_rl's, but for what a task of this name learns better with.
PpoRunSettings preset(const std::string& task);

}  // namespace cohort::rl
