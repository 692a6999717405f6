/// What a run of PPO tells of its iterations, on rank 0: metrics, progress, lines of the log, the report's figures.
#pragma once
#include <cstdint>
#include <optional>

#include "rl/run.h"
#include "rl/run_watch.h"
#include "rl/runner.h"
#include "run/run.h"

namespace cohort::rl {

class IterationFigures {
 public:
  /// Behind `iteration`.
  IterationFigures(run::Run& run, const PpoRunSettings& settings, std::int64_t iteration);

  void observe(const Iteration& iteration, const IterationTimes& times);
  /// The progress shows the last iteration.
  void end();
  /// Logs the figures of the last iteration, and what the run took.
  void say_last() const;
  /// Adds them to what the report shows.
  void add_to(report::ReportContent& content, double seconds) const;
  std::int64_t last_iteration() const { return last_ ? last_->number : 0; }

 private:
  /// Figures of the iteration for the log, ten times in a run.
  void say_figures(const Iteration& iteration);

  run::Run& run_;
  const PpoRunSettings& settings_;
  std::optional<Iteration> last_;
  std::int64_t last_table_ = 0;  ///< which of the tables of figures was the last that was said
  bool succeeded_ = false;       ///< in some episode so far
  double steps_per_s_ = 0, collecting_s_ = 0, learning_s_ = 0;
};

}  // namespace cohort::rl
