/// Rollouts of a policy that is being trained: what `rollout.*` of a training plays.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "eval/evaluation.h"
#include "policies/trained_policy.h"
#include "tasks/task.h"

namespace cohort::eval {

struct TrainingRolloutSettings {
  std::int64_t episodes = 50;  ///< all ranks together
  std::int64_t max_steps = 0;  ///< 0: the task's horizon
  bool end_at_success = false;
  std::uint64_t first_seed = 50000;
  int rank = 0, world_size = 1;
};

/// Throws Error where policy and task do not fit.
void check_fit(tasks::Task& task, const policies::PolicyInTraining& training);

/// This rank's episodes: every world_size-th one.
PolicyResult training_rollouts(tasks::Task& task, const policies::PolicyInTraining& training,
                               const TrainingRolloutSettings& settings);

}  // namespace cohort::eval
