/// The end of a run: figures of the test set as text and in the report.
#pragma once
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
  std::string world;  ///< "2 processes"
};

/// How many steps changed nothing, and why; empty: all did.
std::string skipped_text(const TrainResult& result);

/// Lines for the log: the table of errors in the units of the data and the overall ones in the units of the loss.
std::string describe_test(const TestResult& test);

/// Writes test_metrics.json, the charts and report.html. Never throws: what goes wrong is a warning.
void write_report(const Job& job, const RunSettings& settings, const report::RunFolder& folder,
                  const RunSummary& summary, const TestResult* test, report::MetricsWriter& metrics);

}  // namespace cohort::train
