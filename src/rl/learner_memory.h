/// What learning takes of the host's memory beside the simulator, so that too many environments are refused before the
/// machine has none left.
///
///   need_memory({.policy = policy, .ppo = ppo, .runner = runner, .task = task->spec(), .n_envs = 2048},
///               sim::available_host_memory());
#pragma once
#include <cstdint>

#include "rl/settings.h"
#include "tasks/task.h"

namespace cohort::rl {

struct LearnerSize {
  PolicySettings policy;
  PpoSettings ppo;
  RunnerSettings runner;
  tasks::TaskSpec task;
  std::int64_t n_envs = 1;  ///< of all ranks
  std::int64_t ranks = 1;   ///< each with its share of the environments
};

/// Bytes of one rank: of each of its environments, and beside them.
struct LearnerMemory {
  double per_environment = 0;  ///< rollout, a minibatch with what the layers give, the actions of the episode so far
  double fixed = 0;            ///< weights, their gradients, the optimizer's moments, a checkpoint's copy
};
LearnerMemory learner_memory(const LearnerSize& size);

/// Throws Error where a rank's share takes more than `available` bytes, with the largest n_envs that takes less.
void need_memory(const LearnerSize& size, double available);

}  // namespace cohort::rl
