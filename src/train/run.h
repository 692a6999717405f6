/// A whole training run: from settings to a folder with weights, log, metrics, charts and a report, on however many
/// devices and processes there are. What `cohort train` does.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "core/devices.h"
#include "data/loader.h"
#include "parallel/plan.h"
#include "train/jobs/job.h"
#include "train/rollout_validation.h"
#include "train/train_settings.h"

namespace cohort::train {

struct RunSettings {
  std::string name;                    ///< of the run: results go to output_dir/name/<date-time>; empty: the job's name
  std::string output_dir = "outputs";  ///< folder of all runs
  /// Folder of a run to continue; auto: the run of this job, or else the newest of this name; empty: a new run, or the
  /// run of this job where a launcher or Slurm has started it again.
  std::string resume;
  std::string init_from;           ///< run or checkpoint whose weights a new run begins with; empty: none
  bool links_results = false;      ///< output_dir shows the run's files by links (report/result_links.h); no setting
  std::string program = "cohort";  ///< how the user calls it, for commands to paste; no setting
  /// gpu, cuda, metal or cpu; `cohort launch --cpu` and the like set the default through COHORT_BACKEND.
  std::string backend = backend_name(default_backend());
  std::vector<std::string> devices;  ///< of this process, e.g. cuda:0,cuda:1 or cpu,cpu; empty: all of the backend
  int threads = 0;                   ///< CPU threads inside an operation, per process; 0: OMP_NUM_THREADS, else all
  std::string mode = "auto";         ///< auto, single, dp or ddp
  bool drop_last = false;            ///< leave out a last training batch that is not full
  bool tensorboard = true;
  bool tensorboard_charts = false;  ///< the report's charts there, too, as pictures
  bool charts = true;
  bool rank_status = true;             ///< every rank keeps ranks/rank_N.json in the run's folder for `cohort top`
  double store_timeout_s = 300;        ///< s; ranks that have not found each other by then end with an error
  double collective_timeout_s = 1800;  ///< s; a rank that is later than this at a collective counts as lost
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
