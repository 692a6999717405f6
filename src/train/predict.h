/// What a trained model says about data: `cohort predict`. A regressor or Informer answers for a CSV file, a policy for
/// every step of recorded episodes.
///
///   const PredictReport report = predict_file({.run = "outputs/regressor/latest", .file = "new.csv", .out =
///   "answers.csv"});
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "report/test_metrics.h"

namespace cohort::train {

struct PredictSettings {
  std::filesystem::path run;   ///< a run, its folder of checkpoints, or a checkpoint
  std::filesystem::path file;  ///< CSV; of policies RLDS, HDF5 or LeRobot
  /// CSV: a column of row numbers or dates, then one for each target. Of policies: episode, step, and for each number
  /// of the action what is predicted and what was recorded; or .hdf5: data/demo_N with step, actions,
  /// predicted_actions.
  std::filesystem::path out;
  std::string device = "cpu";
  std::int64_t batch_size = 0;         ///< 0: 1024, and 64 of policies that see
  std::string data_set;                ///< whose statistics, where each data set of a policy has its own
  std::vector<std::string> overrides;  ///< of the run's settings, e.g. data.csv.separator=;
};

struct PredictReport {
  std::string job;
  std::string weights;    ///< which file they came from
  std::int64_t rows = 0;  ///< written
  std::vector<std::string> targets;
  std::optional<report::TestMetrics> metrics;  ///< where the file holds the targets: in the units of the data
};

/// Writes `out` as a whole or not at all. Throws Error naming the file and what is wrong with it.
PredictReport predict_file(const PredictSettings& settings);

}  // namespace cohort::train
