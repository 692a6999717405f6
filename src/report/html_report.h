/// report.html: one file that shows a run, without a request to anywhere.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/charts.h"
#include "report/machine.h"
#include "report/run_folder.h"
#include "report/test_metrics.h"

namespace cohort::report {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// What the page says. All texts are plain; they are escaped here.
struct ReportContent {
  std::string title;                ///< "informer on arm.csv"
  std::string status = "finished";  ///< "finished", "stopped early at step 400", "failed: NaN loss at step 12"
  bool failed = false;              ///< shows the status as a failure
  NamedTexts highlights;  ///< the three to six figures that people look for, in large type: {"test R2", "0.987"}
  NamedTexts summary;     ///< model, data, devices, world, effective batch, duration, throughput, ...
  std::string test_name = "test set";
  std::optional<TestMetrics> test;  ///< errors on it
  std::string test_note;            ///< which weights were tested, and in which unit the errors are
  std::vector<DrawnFigure> figures;
  Machine machine;
  NamedTexts environment;  ///< in place of the machine's rows, where the content was read back
};

/// The page as it lies in `folder`, from which its links go. Reads the run's configuration, overrides, log, evaluations
/// and list of files from its folder; what is missing is left out.
std::string html_report(const RunFolder& run, const ReportContent& content, const std::filesystem::path& folder);

/// Writes it to run.report_file(), whole or not at all, and the content beside it (saved_content.h). Throws Error.
void write_html_report(const RunFolder& run, const ReportContent& content);

}  // namespace cohort::report
