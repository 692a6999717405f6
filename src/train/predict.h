/// What a trained regressor or Informer says about a file: `cohort predict`.
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
  std::filesystem::path file;  ///< CSV
  std::filesystem::path out;   ///< CSV: a column of row numbers or dates, then one for each target
  std::string device = "cpu";
  std::int64_t batch_size = 1024;
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
