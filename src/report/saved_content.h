/// report.json: what a report says, so that it can be written again with what has come since (evaluations).
#pragma once
#include <optional>

#include "report/html_report.h"

namespace cohort::report {

/// Writes report.json into the run's folder. Throws Error.
void save_content(const RunFolder& run, const ReportContent& content);
/// Reads it back; nothing where there is none. Throws Error naming the file where it is damaged.
std::optional<ReportContent> load_content(const RunFolder& run);

}  // namespace cohort::report
