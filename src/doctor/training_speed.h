/// A training's loader and its step, each measured alone (train/part_speeds.h): which of them holds the other up.
///
///   doctor::judge(doctor::parse_training_speed(json), c, examination);
#pragma once
#include <cstdint>
#include <string>

#include "doctor/examination.h"

namespace cohort::doctor {

inline constexpr const char* kMeasuredLoader = "measured-loader";  ///< the check's name

struct TrainingSpeed {
  std::string job, device;
  std::int64_t batch_size = 0;  ///< samples
  int workers = 0;              ///< of the loader
  double loader_s = 0;          ///< that the loader needs for a batch
  double step_s = 0;            ///< that a step needs for a batch

  double loader_samples_per_s() const { return static_cast<double>(batch_size) / loader_s; }
  double step_samples_per_s() const { return static_cast<double>(batch_size) / step_s; }
  /// Share of a training's time in which steps wait for data, 0 to 1, at least: both run side by side, the loader ahead
  /// of the step.
  double waits() const { return loader_s > step_s ? 1 - step_s / loader_s : 0; }
};

/// Of what cohort-train prints. Throws Error for a text that is none.
TrainingSpeed parse_training_speed(const std::string& json);

/// Adds the finding that the loader is the bottleneck where steps would wait for more than a tenth of their time.
void judge(const TrainingSpeed& speed, const Case& c, Examination& found);

}  // namespace cohort::doctor
