/// What happens at the end of a run: the standard charts, and the page that shows them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/gnuplot.h"
#include "report/html_report.h"
#include "report/metrics_writer.h"
#include "report/run_folder.h"
#include "report/standard_figures.h"

namespace cohort::report {

struct RunResults {
  ReportContent content;                   ///< its figures are filled in here
  std::string loss_name = "loss";          ///< "mean squared error"
  std::optional<Predictions> predictions;  ///< of the test set
  std::vector<ForecastWindow> windows;     ///< examples of forecasts
  std::string time_label = "steps from the forecast";
};

/// Draws the standard figures from metrics.jsonl and the results, shows them in TensorBoard as pictures (step: the last
/// one) when `writer` is given, and writes report.html. A run never fails here: what goes wrong is a warning in the log, and
/// false.
bool write_run_report(const RunFolder& run, RunResults results, std::int64_t step, MetricsWriter* writer = nullptr,
                      const GnuplotSettings& gnuplot = {});

}  // namespace cohort::report
