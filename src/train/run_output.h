/// What a run says and writes beside its checkpoints: log, configuration, metrics, progress, charts and report. Rank 0
/// writes; on the others the same calls only say.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/pace.h"
#include "core/progress.h"
#include "dist/group.h"
#include "report/metrics_writer.h"
#include "report/run_folder.h"
#include "run/gpu_watch.h"
#include "run/host_watch.h"
#include "train/loop.h"
#include "train/run.h"
#include "train/run_report.h"

namespace cohort::train {

class RunOutput {
 public:
  /// `claimed`: the folder on rank 0, which is kept once training begins; null on the others. `fields` are the settings
  /// as they were resolved, `overrides` what the command line said of them. All of these outlive the output.
  RunOutput(const Trainable& trainable, const RunSettings& settings, const report::RunFolder& folder,
            report::ClaimedFolder* claimed, const config::Fields& fields, const std::vector<std::string>& overrides);
  RunOutput(const RunOutput&) = delete;
  RunOutput& operator=(const RunOutput&) = delete;

  /// Says what is about to be trained, on what and how. validates: there is something to validate with. group: null for
  /// one process.
  void announce(const parallel::Plan& plan, const torch::nn::Module& model, bool validates, dist::Group* group);
  /// Adds what a checkpoint holds of this run, and what is written while the loop trains.
  void attach(TrainJob& train_job);
  /// For TrainJob::beat: counts every step on the progress, beside what `other` does (which may be empty).
  BeatObserver counting(BeatObserver other);
  /// Before the loop runs: how far the progress goes.
  void set_total_steps(std::int64_t steps) { total_steps_ = steps; }

  void trained(const TrainResult& result, double seconds);
  /// Training ended with an error. `with_report`: charts and report say so, too.
  void failed(const std::string& what, double seconds, bool with_report);
  /// Whether the run that is resumed has all that a finished one writes; on rank 0. has_test: there is a test set.
  bool is_complete(bool has_test) const;
  /// The training was finished before: says so, and leaves the folder, its log too, as it was.
  void left_as_it_was(const TrainResult& result);
  /// The test set's figures, or null; then what lies where.
  void finish(const TestResult* test);

 private:
  /// Says that steps are being skipped: the first time, and whenever they have become twice as many.
  class SkipWarning {
   public:
    void observe(const StepStats& s);

   private:
    std::int64_t told_ = 0;
  };
  void begin(std::int64_t resumed_step);
  void count(std::int64_t step);
  void say_what_next() const;
  void observe_step(const StepStats& s);
  void observe_validation(const ValidationStats& s);

  const Trainable& trainable_;
  const RunSettings& settings_;
  const report::RunFolder& folder_;
  report::ClaimedFolder* claimed_;
  const std::vector<std::string>& overrides_;
  config::Json resolved_, changed_;
  RunSummary summary_;
  std::int64_t total_steps_ = 0;
  std::optional<std::uintmax_t> log_bytes_;  // of a resumed run's log, before this process wrote to it
  SkipWarning skips_;
  std::optional<run::GpuWatch> gpus_;  ///< on rank 0
  run::HostWatch host_;
  std::optional<report::MetricsWriter> metrics_;
  std::optional<Progress> progress_;
  std::optional<Pace> pace_;
  std::int64_t counted_ = 0;  ///< steps, by the progress
};

}  // namespace cohort::train
