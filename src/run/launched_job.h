/// The jobs of launchers and schedulers that have trained in a run's folder, so that a job that is started again goes
/// on with its own run.
///
/// jobs.jsonl in a run's folder has a line for each: {"id": "SLURM_JOB_ID=77", "arguments": ["data.path=a.csv"]}.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rank/environment.h"
#include "run/settings.h"

namespace cohort::run {

/// The job that this process is part of.
struct LaunchedJob {
  /// What stays the same when it is started again: "TORCHELASTIC_RUN_ID=...", "SLURM_JOB_ID=...", as far as they are
  /// set. A torchrun without --rdzv-id calls every job "none": its folder of logs, which is its own, tells them apart.
  std::string elastic_id;
  std::string slurm_id;
  /// How often it was started again, by the launcher (TORCHELASTIC_RESTART_COUNT) and by Slurm (SLURM_RESTART_COUNT).
  int elastic_restarts = 0;
  int slurm_restarts = 0;

  bool restarted() const { return elastic_restarts > 0 || slurm_restarts > 0; }
};

/// Throws Error for a count that is no number.
LaunchedJob read_launched_job(const rank::VariableLookup& lookup = rank::process_variable);

/// Adds the job to the run's jobs.jsonl. `arguments`: the settings of the command line, which tell apart two runs of
/// one job. Nothing is written where there is no launcher. Throws Error.
void record_job(const std::filesystem::path& run, const LaunchedJob& job, const std::vector<std::string>& arguments);

/// The run that `resume` means, among those in `runs` (outputs/<name>): the folder that it names; for "auto" the run of
/// this job with these arguments, or else the newest one; for "", where the job has been started again, the run of this
/// job. Empty: a new run is begun. Says what was found unless `quietly`.
std::string find_run(const std::string& resume, const std::filesystem::path& runs, const LaunchedJob& job,
                     const std::vector<std::string>& arguments, bool quietly = false);

/// The same before a Run exists, for who has to know what the run keeps: the folder of the run that `settings` will go on
/// with, named or found by itself. Empty: a new one is begun. Says nothing. Throws Error.
std::string run_to_continue(const RunSettings& settings, const std::string& default_name,
                            const std::vector<std::string>& arguments);

}  // namespace cohort::run
