/// What a supervised run tells of its steps and validations, on rank 0: metrics, progress, lines of the log.
#pragma once
#include <cstdint>

#include "run/run.h"
#include "train/run.h"
#include "train/step_stats.h"

namespace cohort::train {

class RunFigures {
 public:
  RunFigures(run::Run& run, const RunSettings& settings) : run_(run), settings_(settings) {}

  void observe_step(const StepStats& s);
  void observe_validation(const ValidationStats& s);

  double samples_per_s() const { return samples_per_s_; }  ///< at last
  std::int64_t step() const { return step_; }              ///< observed last

 private:
  /// Says that steps are being skipped: the first time, and whenever they have become twice as many.
  void warn_of_skipped_steps(const StepStats& s);

  run::Run& run_;
  const RunSettings& settings_;
  double samples_per_s_ = 0;
  std::int64_t step_ = 0, skips_told_ = 0;
};

}  // namespace cohort::train
