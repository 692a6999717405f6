/// A whole training run: from settings to a folder with weights, log, metrics, charts and a report, on however many
/// devices and processes there are. What `cohort train` does.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "data/loader.h"
#include "parallel/plan.h"
#include "run/settings.h"
#include "train/jobs/job.h"
#include "train/rollout_validation.h"
#include "train/train_settings.h"

namespace cohort::train {

struct RunSettings : run::RunSettings {
  std::string mode = "auto";  ///< auto, single, dp or ddp
  bool drop_last = false;     ///< leave out a last training batch that is not full
  TrainSettings train;
  data::LoaderSettings loader;
  parallel::StrategySettings parallel;
  RolloutSettings rollout;
};

/// Binds everything but what the job adds: name, output_dir, ..., train.*, loader.*, parallel.*, dist.*.
void describe(config::Fields& fields, RunSettings& settings);

/// Trains and tests. `rollouts` plays episodes for settings.rollout; the run is refused where it is empty and they are
/// enabled. `fields` holds all settings as they were resolved; `overrides` are saved beside them. Returns the
/// exit code of the process: 0, also after early stopping; 128 + signal when a signal ended the training after a
/// checkpoint. Throws Error.
int run(Job& job, RunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides,
        const RolloutFunction& rollouts = {});

}  // namespace cohort::train
