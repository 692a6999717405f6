/// A robomimic configuration (the DROID fork's on RLDS, and robomimic's on HDF5) as settings of the job "policy".
///
///   if (is_robomimic_file(path)) {
///     const RobomimicRun run = read_robomimic_run(path, overrides);
///     fields.apply_json(run.settings, path);
///     for (const std::string& text : run.overrides) fields.apply_override(text);
///   }
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config.h"

namespace cohort::train {

struct RobomimicRun {
  config::Json settings;               ///< of the job "policy", nested as `cohort train policy --help` lists them
  std::vector<std::string> overrides;  ///< those that are no keys of robomimic's: settings of the job
  std::vector<std::string> notes;      ///< keys that are read and have no effect here, with the reason
};

/// True for a JSON file that says algo_name. Throws Error for one that cannot be read or is no JSON.
bool is_robomimic_file(const std::string& path);

/// What stands for an environment of robomimic's in rollouts while training.
struct RolloutTask {
  std::string task;                   ///< as `cohort tasks` lists them; empty: none does
  std::vector<std::string> settings;  ///< of the task, key=value
  std::string why_not;                ///< where none does
};
/// Of the environment's name, how long its episodes are to be at most (steps), and whether they end with their success.
using RolloutTaskFunction = std::function<RolloutTask(const std::string& environment, std::int64_t horizon, bool ends)>;

/// Reads the file with `overrides` (key.path=value) laid over it. A key of robomimic's may be given whether or not the
/// file has it; train.optim_params.* stands for algo.optim_params.*, as the package's guide writes it. Every key is
/// honoured, listed in `notes`, or refused: throws Error naming every one that cannot be honoured, with its value.
/// experiment.rollout becomes rollout.* where `rollout_task` knows a task for experiment.env, or else for env_args of
/// the first HDF5 file, or an override names one (rollout.task=NAME); else a note says why there are no rollouts.
RobomimicRun read_robomimic_run(const std::string& path, const std::vector<std::string>& overrides,
                                const RolloutTaskFunction& rollout_task = {});

/// The settings that robomimic's keys among `overrides` change against what the file alone says, nested. `of_job`: the
/// overrides that are none, RobomimicRun::overrides. Throws Error where one of robomimic's changes only what one of
/// `of_job` sets, too (train.num_epochs=2 beside train.steps=9).
config::Json settings_of_robomimic_words(const std::string& path, const std::vector<std::string>& overrides,
                                         const std::vector<std::string>& of_job);

/// robomimic's key of the section train that is meant by a misspelt one; empty: none is near.
std::string near_robomimic_key(const std::string& key);

}  // namespace cohort::train
