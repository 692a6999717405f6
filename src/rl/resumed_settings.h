/// Which settings a run that goes on may change.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "run/changed_settings.h"

namespace cohort::rl {

using run::ChangedSetting;

/// What is learnt otherwise from here on: the changed settings but those that say where, how long and on what a run
/// computes. A path that only one of both has is left out.
/// Throws Error where one changed that has to stay: task, seed, n_envs, num_steps_per_env, and all of policy.* but the
/// first noise. It names `source` and `run`, the folder that goes on with the settings it has.
std::vector<ChangedSetting> settings_changed_since(const config::Json& checkpoint, const config::Json& now,
                                                   const std::string& source, const std::string& run);

}  // namespace cohort::rl
