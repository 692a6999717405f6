/// Reads metrics.jsonl back: for charts after a resume, and for whoever wants numbers in C++.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cohort::report {

/// One metric by step.
struct MetricSeries {
  std::vector<double> steps;   ///< ascending
  std::vector<double> values;  ///< NaN where the value was not finite
};

struct MetricsHistory {
  std::map<std::string, MetricSeries> series;  ///< by name, e.g. "train/loss"
  std::int64_t damaged_lines = 0;              ///< could not be read (a machine that lost power) and were left out

  /// The series, or an empty one.
  const MetricSeries& operator[](const std::string& name) const;
};

/// Throws Error when the file cannot be opened.
MetricsHistory read_metrics(const std::filesystem::path& metrics_jsonl);

/// Rewrites the file without lines after `last_step` and without damaged ones; returns how many were cut. A missing
/// file is empty. The file is replaced in one step.
std::int64_t cut_metrics(const std::filesystem::path& metrics_jsonl, std::int64_t last_step);

}  // namespace cohort::report
