/// What a run of PPO says and writes beside its checkpoints: metrics, TensorBoard events, progress, the report.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/pace.h"
#include "core/progress.h"
#include "report/metrics_writer.h"
#include "report/run_folder.h"
#include "rl/run.h"
#include "rl/run_watch.h"
#include "rl/runner.h"
#include "run/gpu_watch.h"
#include "run/host_watch.h"
#include "tasks/task.h"

namespace cohort::rl {

class PpoOutput {
 public:
  /// `banner`: what the run is, for log and report. `gpus`: NVML's numbers of those that are watched
  /// (run::watched_gpus).
  PpoOutput(const PpoRunSettings& settings, const report::RunFolder& folder,
            std::vector<std::pair<std::string, std::string>> banner, std::vector<int> gpus);

  /// Training begins behind this iteration; with `resumed`, what metrics.jsonl says of later ones is cut.
  void begin(std::int64_t iteration, bool resumed);
  void observe(const Iteration& iteration, const IterationTimes& times);
  /// Before a checkpoint, so that the history is never behind it.
  void sync() { metrics_->sync(); }
  /// Draws the report. status: "finished", "stopped ...", "failed: ...". `ranks`: what each has done, where that is
  /// known.
  void finish(const std::string& status, bool failed, double seconds, const std::vector<run::RankTotals>& ranks = {});

 private:
  /// Figures of the iteration for the log, ten times in a run.
  void say_figures(const Iteration& iteration);

  const PpoRunSettings& settings_;
  const report::RunFolder& folder_;
  std::vector<std::pair<std::string, std::string>> banner_;
  std::optional<report::MetricsWriter> metrics_;
  std::optional<Progress> progress_;
  std::optional<Pace> pace_;
  std::optional<Iteration> last_;
  std::int64_t last_table_ = 0;  ///< which of the tables of figures was the last that was said
  bool succeeded_ = false;       ///< in some episode so far
  run::HostWatch host_;
  run::GpuWatch gpus_;
  double steps_per_s_ = 0, collecting_s_ = 0, learning_s_ = 0;
};

/// Logs what can be done with a run's policy, for a user to paste.
void say_what_next(const PpoRunSettings& settings, const tasks::Task& task, const std::filesystem::path& run);

}  // namespace cohort::rl
