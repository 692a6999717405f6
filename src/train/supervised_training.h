/// The supervised jobs (jobs/job.h) as trainings of the command line (run/training.h): their settings, the flags of policies'
/// references, robomimic's configurations, and what can be measured of them.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/training.h"
#include "train/jobs/robomimic_run.h"
#include "train/run.h"

namespace cohort::train {

/// What needs tasks, which the training of a policy does not know.
struct TaskFunctions {
  /// What settings.rollout plays; empty where it is not enabled. run: the folder of the run that goes on, or "". Throws
  /// Error for an unknown task.
  std::function<RolloutFunction(RunSettings& settings, const std::string& run)> rollouts;
  RolloutTaskFunction task_of_environment;  ///< of a robomimic configuration
};

/// The jobs whose models say their shapes, with commas.
std::string jobs_with_shapes();

/// One for each of all_jobs().
std::vector<std::unique_ptr<run::Training>> supervised_trainings(const TaskFunctions& tasks);

}  // namespace cohort::train
