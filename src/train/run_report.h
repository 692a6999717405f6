/// The end of a run: figures of the test set as text, as files and in the report.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/metrics_writer.h"
#include "report/run_folder.h"
#include "train/loop.h"
#include "train/run.h"
#include "train/run_test_set.h"

namespace cohort::train {

/// What a report says beside the test set.
struct RunSummary {
  std::vector<std::pair<std::string, std::string>> banner;
  TrainResult result;
  std::string status;  ///< "finished", "stopped early at step 400, best at 250", ...
  double seconds = 0;  ///< of training
  double samples_per_s = 0;
  bool failed = false;                    ///< status says how
  std::optional<double> gpu_utilization;  ///< %, mean over the run and its GPUs on rank 0's machine
};

/// How many steps changed nothing, and why; empty: all did.
std::string skipped_text(const TrainResult& result);

/// Lines for the log: the table of errors in the units of the data and the overall ones in the units of the loss.
std::string describe_test(const TestResult& test);

/// The file of the weights that a training ends with and tests, within the run's folder: of the best validation or of
/// the last step, and the moving average where one is kept.
std::filesystem::path tested_weights(const TrainSettings& settings, const TrainResult& result);
/// "the weights of step 26, the best validation".
std::string describe_weights(const TrainSettings& settings, const TrainResult& result);

/// Writes test_metrics.json and test_metrics.txt. Never throws: what goes wrong is a warning.
void write_test_metrics(const report::RunFolder& folder, const TestResult& test);
/// Removes what an earlier test of a run that is resumed has left: its figures and its charts.
void remove_test_results(const report::RunFolder& folder);

/// Writes the charts and report.html. Never throws: what goes wrong is a warning.
void write_report(const Trainable& trainable, const RunSettings& settings, const report::RunFolder& folder,
                  const RunSummary& summary, const TestResult* test, report::MetricsWriter& metrics);

}  // namespace cohort::train
