/// A run, whatever learns in it: which one it is or goes on with, its ranks, its folder, what it says and writes (log,
/// metrics, TensorBoard, progress, charts, report), signals, and how it ends.
///
///   run::RunSettings settings;                               // or what derives from it
///   return run::Run(settings, fields, overrides).carry_out(learner);
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/pace.h"
#include "core/progress.h"
#include "dist/group.h"
#include "dist/recovery.h"
#include "rank/beat.h"
#include "rank/environment.h"
#include "report/metrics_writer.h"
#include "report/run_folder.h"
#include "run/gpu_watch.h"
#include "run/host_watch.h"
#include "run/learner.h"
#include "run/settings.h"

namespace cohort::run {

class RankBeats;

class Run {
 public:
  /// `fields`: all settings as they were resolved; `overrides`: what the command line said of them, saved beside them.
  /// All of them outlive it.
  Run(RunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Returns the exit code of the process: 0, or 128 + signal when a signal ended the training after a checkpoint. Throws
  /// Error: for bad input before anything is written.
  int carry_out(Learner& learner);

  // For the learner.
  const rank::Environment& environment() const { return environment_; }
  bool is_first() const { return environment_.rank == 0; }
  /// A run is continued: settings.resume is its folder.
  bool resumes() const { return !settings_.resume.empty(); }
  /// The ranks that it exchanges with; null: it is alone.
  const std::shared_ptr<dist::Group>& group() const { return group_; }
  /// The launcher's help when another rank dies; null: there is none.
  dist::Recovery* recovery() const { return recovery_.get(); }
  /// This process takes a dead rank's place.
  bool replaces() const { return recovery_ && recovery_->replaces(); }
  /// The run's folder, from banner() on.
  const report::RunFolder& folder() const { return *folder_; }
  /// The settings as whoever starts from them again needs them, from build() on; for checkpoints.
  const config::Json& configuration() const { return configuration_; }

  /// Whether the run that is resumed has all that a finished one writes, `files` of its folder among them; what rank 0
  /// says. Collective.
  bool is_complete(const std::vector<std::string>& files = {});
  /// Training begins behind `step` of `total`. On rank 0 the folder stays from here on. `anew`: why a run that is resumed
  /// begins at its first step; empty: it does not.
  void begin(std::int64_t step, std::int64_t total, const std::string& anew = "");
  /// A first step was made: for `cohort launch`, which does not start a program again that fails at its start.
  static void first_step();
  /// For the learner's beats: the launcher, the rank's status file, and the progress.
  rank::BeatObserver beats();
  /// The figures of a step, on rank 0: to the metrics, with what the machine is doing; the GPUs' part is returned.
  std::optional<GpuLoad> observe(std::int64_t step, std::vector<report::TagValue> values);
  /// More figures of a step that was observed.
  void add_figures(std::int64_t step, const std::vector<report::TagValue>& values) { metrics_->write(step, values); }
  /// On rank 0, once it has begun; null on others.
  Progress* progress() { return progress_ ? &*progress_ : nullptr; }
  /// Before a checkpoint, so that the history is never behind it. Nothing on other ranks.
  void sync_metrics();

 private:
  void choose();
  void join(Learner& learner, const dist::GroupOptions& options);
  void check_ranks_agree(const Learner& learner);
  void open_folder();
  void announce(const Resources& resources);
  void count(std::int64_t step);
  void failed(const Learner& learner, const std::string& what, double seconds);
  void say_end(const Outcome& outcome, double seconds);
  void left_as_it_was(const Outcome& outcome);
  void write_report(Results results, const std::string& status, bool is_failure,
                    const std::vector<rank::Totals>& ranks);
  void say_where_things_are(const Results& results, bool stopped) const;

  RunSettings& settings_;
  const config::Fields& fields_;
  const std::vector<std::string>& overrides_;
  const rank::Environment environment_;
  std::unique_ptr<dist::Recovery> recovery_;
  Counting counting_;
  std::string name_;
  bool found_itself_ = false;  // the run that is continued: nobody named it
  std::shared_ptr<dist::Group> group_;
  std::optional<report::ClaimedFolder> claimed_;  // rank 0; outlives everything that writes into it
  std::optional<report::RunFolder> folder_;
  config::Json configuration_;
  std::optional<std::uintmax_t> log_bytes_;  // of a resumed run's log, before this process wrote to it
  std::vector<BannerRow> banner_;
  std::string status_;
  std::unique_ptr<RankBeats> beats_;

  // Rank 0, from begin() on.
  std::optional<GpuWatch> gpus_;
  HostWatch host_;
  std::optional<report::MetricsWriter> metrics_;
  std::optional<Progress> progress_;
  std::optional<Pace> pace_;
  std::int64_t counted_ = 0;  ///< by the progress
};

}  // namespace cohort::run
