/// Validation by rollouts: how often the policy that is being trained succeeds in a simulated task. The training knows
/// no task: whoever runs it hands over the function that plays the episodes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/config.h"
#include "train/validation.h"

namespace cohort::train {

/// robomimic's experiment.rollout, and which task.
struct RolloutSettings {
  bool enabled = false;
  std::string task;                        ///< as `cohort tasks` lists them
  std::vector<std::string> task_settings;  ///< key=value of the task
  std::string task_library;                ///< the shared library that the task comes from; empty: it is built in
  std::int64_t n = 50;                     ///< episodes, all ranks together
  std::int64_t horizon = 0;                ///< steps of an episode; 0: the task's horizon
  std::int64_t rate = 1;                   ///< every so many validations
  std::int64_t warmstart = 0;              ///< validations before the first rollouts
  bool terminate_on_success = false;       ///< also where the task lets an episode go on; else the task decides
  int n_envs = 16;                         ///< at a time, of each rank
  std::uint64_t first_seed = 50000;        ///< neither those of evaluations nor those of recordings
};

/// Binds them in the current section (by convention "rollout").
void describe(config::Fields& fields, RolloutSettings& settings);

/// What is asked of the function that plays the episodes.
struct RolloutRequest {
  torch::nn::Module* model = nullptr;  ///< in evaluation mode; its moving average where one is kept
  std::string configuration;           ///< JSON, as checkpoints hold it
  std::string statistics;              ///< JSON, likewise
  int rank = 0, world_size = 1;
  bool check_only = false;  ///< play nothing: only throw Error where task and policy do not fit
  /// Not empty: play nothing, and write to this folder of the run what its task is made from, for when files have changed
  /// or moved.
  std::filesystem::path keep_in;
};

/// This rank's share of the episodes: rollout/failure, rollout/success, rollout/return, rollout/steps, in this order,
/// as sums over its episodes; nothing when only a check is asked for.
using RolloutFunction = std::function<std::vector<Metric>(const RolloutRequest& request)>;

/// `validator` (may be empty), and in every settings.rate-th validation, beyond the first settings.warmstart ones, what
/// the rollouts measure, behind its own metrics. `request` without a model.
Validator with_rollouts(Validator validator, const RolloutSettings& settings, RolloutFunction rollouts,
                        RolloutRequest request);

}  // namespace cohort::train
