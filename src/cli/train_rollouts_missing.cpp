// Stands in for train_rollouts.cpp in a build without tasks.
#include "cli/train_rollouts.h"
#include "core/error.h"

namespace cohort::cli {

train::RolloutFunction rollouts_of(train::RunSettings& settings, const std::string&) {
  COHORT_THROW_UNLESS(
      !settings.rollout.enabled,
      "rollout.enabled=true: this build has no tasks, because MuJoCo was missing when it was configured");
  return {};
}

train::RolloutTaskFunction rollout_tasks() {
  return {};
}

std::vector<std::unique_ptr<run::Training>> trainings_in_simulation() {
  return {};
}

}  // namespace cohort::cli
