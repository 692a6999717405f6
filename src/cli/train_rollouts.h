/// What `cohort train` has of tasks, where this build has any.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "run/training.h"
#include "train/jobs/robomimic_run.h"
#include "train/run.h"

namespace cohort::cli {

/// Makes the task, so that an unknown one is refused before anything else happens; empty where rollouts are not
/// enabled. run: the folder of the run that goes on, or "". Throws Error.
train::RolloutFunction rollouts_of(train::RunSettings& settings, const std::string& run);

/// The task that stands for an environment of a robomimic configuration: the one of its name.
train::RolloutTaskFunction rollout_tasks();

/// Those that learn in a simulation.
std::vector<std::unique_ptr<run::Training>> trainings_in_simulation();

}  // namespace cohort::cli
