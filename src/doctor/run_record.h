/// What a run has left in its folder, as far as it is there: settings, metrics, the ranks' status files, and what
/// programs printed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rank/status.h"
#include "report/metrics_history.h"

namespace cohort::doctor {

struct TextFile {
  std::filesystem::path path;
  std::string text;  ///< the last MiB
};

struct RunRecord {
  std::filesystem::path path;
  std::map<std::string, std::string> settings;  ///< of config.json, "train.batch_size" -> "32"
  report::MetricsHistory metrics;
  std::vector<rank::Status> ranks;
  std::vector<TextFile> texts;  ///< training.log, and *.log, error.json and *.txt of launchers below the folder

  std::string setting(const std::string& name) const;
  /// Mean over the second half of what was written, where the first steps no longer count; nothing without two values.
  std::optional<double> steady(const std::string& metric) const;
  /// A part of a step, 0 to 1: steady(metric) times the steps per second.
  std::optional<double> share(const std::string& metric) const;
  bool finished() const;
};

/// Throws Error where there is no such folder, or nothing in it that a run or a launcher writes.
RunRecord read_run(const std::filesystem::path& folder);

/// A run of the same name beside it that trained in one process, the newest, with its samples/s; nothing: there is
/// none.
struct SingleRun {
  std::filesystem::path path;
  double samples_per_s;
};
std::optional<SingleRun> single_run_beside(const RunRecord& run);

/// Names of the tensors in a safetensors file (github.com/huggingface/safetensors, "Format"); empty where it is none.
std::vector<std::string> tensor_names(const std::filesystem::path& file);

}  // namespace cohort::doctor
