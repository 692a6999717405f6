/// What a user sets about a run, whatever learns in it.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "core/devices.h"

namespace cohort::run {

struct RunSettings {
  std::string name;                    ///< results go to output_dir/name/<date-time>; empty: the learner's own name
  std::string output_dir = "outputs";  ///< folder of all runs
  /// Folder of a run to continue; auto: the run of this job, or else the newest of this name; empty: a new run, or the
  /// run of this job where a launcher or Slurm has started it again.
  std::string resume;
  std::string init_from;           ///< run or checkpoint whose weights a new run begins with; empty: none
  bool links_results = false;      ///< output_dir shows the run's files by links (report/result_links.h); no setting
  std::string program = "cohort";  ///< how the user calls it, for commands to paste; no setting
  /// gpu, cuda, metal or cpu; `cohort launch --cpu` and the like set the default through COHORT_BACKEND.
  std::string backend = backend_name(default_backend());
  std::vector<std::string> devices;  ///< of this process, e.g. cuda:0,cuda:1 or cpu,cpu; empty: the learner's choice
  int threads = 0;                   ///< CPU threads of this process; 0: as many as there are
  bool tensorboard = true;
  bool tensorboard_charts = false;  ///< the report's charts there, too, as pictures
  bool charts = true;
  bool rank_status = true;             ///< every rank keeps ranks/rank_N.json in the run's folder for `cohort top`
  double store_timeout_s = 300;        ///< s; ranks that have not found each other by then end with an error
  double collective_timeout_s = 1800;  ///< s; a rank that is later than this at a collective counts as lost
};

/// What --help says of the settings that mean something else to each learner.
struct SettingTexts {
  const char* name = "of the run: results go to output_dir/name/<date-time>; empty: the job's name";
  const char* init_from =
      "run or checkpoint whose weights a new run begins with (its moving average where it has one); nothing else "
      "is taken over";
  std::vector<std::string> backends{"gpu", "cuda", "metal", "cpu"};
  const char* backend = "gpu: the best one present, the CPU if there is none; the others are forced";
  const char* devices = "of this process, e.g. cuda:0,cuda:1 or cpu,cpu; empty: all of the backend";
  const char* threads = "CPU threads inside an operation, per process; 0: OMP_NUM_THREADS, else all cores";
};

/// Binds name, output_dir, resume, ..., dist.*
void describe(config::Fields& fields, RunSettings& settings, const SettingTexts& texts = {});

}  // namespace cohort::run
