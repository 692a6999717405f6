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
  bool tensorboard = true;  ///< also write events.out.tfevents.*, into events_folder()
  /// Continue the history of a checkpoint at this step: later steps are cut from both files, so that none appears
  /// twice. Unset: a new history; a metrics.jsonl that already holds lines is an error then.
  std::optional<std::int64_t> resumed_step;
};

/// Where TensorBoard's events of a run lie: NAME/tensorboard/DATE-TIME beside the run NAME/DATE-TIME where NAME/latest is
/// a link. TensorBoard follows links, so that it would show the newest run twice if its events were in the run's folder.
/// There they are where there is no such link, and where earlier events are there already.
std::filesystem::path events_folder(const std::filesystem::path& run);

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
