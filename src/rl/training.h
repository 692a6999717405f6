/// PPO as a training of the command line, `cohort train ppo`: its settings are a task's presets, files, and words among
/// which the task's own settings may stand.
#pragma once
#include <memory>

#include "run/training.h"

namespace cohort::rl {

std::unique_ptr<run::Training> ppo_training();

}  // namespace cohort::rl
