/// What `rollout.*` of a training plays.
#pragma once
#include "train/run.h"

namespace cohort::cli {

/// Makes the task, so that an unknown one is refused before anything else happens; empty where rollouts are not
/// enabled. Throws Error.
train::RolloutFunction rollouts_of(const train::RunSettings& settings);

}  // namespace cohort::cli
