/// Metrics by step, into metrics.jsonl and TensorBoard's events.
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "report/append_file.h"
#include "report/tensorboard_events.h"

namespace cohort::report {

struct MetricsSettings {
  bool tensorboard = true;  ///< also write events.out.tfevents.*
  /// Continue the history of a checkpoint at this step: later steps are cut from both files, so that none appears
  /// twice. Unset: a new history; a metrics.jsonl that already holds lines is an error then.
  std::optional<std::int64_t> resumed_step;
};

/// Rank 0 owns one. Thread-safe.
///
/// A line of metrics.jsonl:
///   {"step":100,"time":1763715391.123,"train/loss":0.4231,"train/lr":0.0001}
/// Numbers are exact. A value that is not finite is null, which JSON readers take, and is spelled out beside:
///   {"step":101,"time":...,"train/loss":null,"not_finite":{"train/loss":"nan"}}
class MetricsWriter {
 public:
  /// Throws Error when the folder cannot be written.
  explicit MetricsWriter(const std::filesystem::path& folder, const MetricsSettings& settings = {});

  /// The values of one step. Steps ascend; a step may be written in several parts (training, then validation). When the
  /// disk is full, throws Error, and metrics.jsonl ends with its last whole line.
  void write(std::int64_t step, std::span<const TagValue> values);
  void write(std::int64_t step, std::initializer_list<TagValue> values) {
    write(step, std::span(values.begin(), values.size()));
  }

  /// For TensorBoard only: Markdown, and a PNG file.
  void text(const std::string& tag, std::int64_t step, const std::string& markdown);
  void image(const std::string& tag, std::int64_t step, const std::filesystem::path& png);

  /// Syncs to the disk; a checkpoint does this, so that the history is never behind it.
  void sync();

 private:
  std::mutex mutex_;
  std::unique_ptr<AppendFile> lines_;
  std::unique_ptr<TensorboardEvents> events_;
};

}  // namespace cohort::report
