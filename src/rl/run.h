/// A whole run of PPO: from settings to a folder with weights, log, metrics and a report. What `cohort train ppo` does.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "rl/settings.h"
#include "run/settings.h"

namespace cohort::rl {

struct Iteration;

struct PpoRunSettings : run::RunSettings {
  PpoRunSettings() { backend = "cpu"; }  // where simulator and learner are: small networks are faster there

  std::string checkpoint;  ///< of the run to continue, its folder; empty: the newest; no setting
  std::string task;
  std::vector<std::string> task_settings;  ///< key=value of the task's own settings
  std::string task_library;                ///< the shared library that the task comes from; empty: it is built in
  std::string engine = "batched";          ///< of the simulation, or mujoco
  int n_envs = 256;                        ///< over all ranks
  int learner_threads = 0;  ///< cores for learning; 0: all. No result depends on it but with activations of LibTorch's
                            ///< own (FusedMlp::activation) and in bf16
  std::int64_t save_interval = 50;    ///< iterations between checkpoints
  std::int64_t keep_checkpoints = 3;  ///< the newest; 0: all
  std::int64_t log_interval = 0;      ///< iterations between the log's figures; 0: ten times in a run
  /// The run ends when the mean return of at least a hundred episodes has reached it; nothing: after max_iterations.
  std::optional<double> stop_at_return;
  RunnerSettings runner;
  PpoSettings algorithm;
  PolicySettings policy;
};

void describe(config::Fields& fields, PpoRunSettings& settings);

/// Throws Error naming the setting that is out of range, whatever the machine.
void check(const PpoRunSettings& settings);

/// Whether `stop_at_return` ends the run after this iteration: the same on all ranks.
bool has_reached_return(const PpoRunSettings& settings, const Iteration& iteration);

/// Trains. `fields` holds all settings as they were resolved; `overrides` are saved beside them. Returns the exit code
/// of the process: 0, or 128 + signal when a signal ended the training after a checkpoint. Throws Error: for bad input
/// before anything is written; where the losses are not finite any more, naming the last good checkpoint.
int run(PpoRunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides);

}  // namespace cohort::rl
