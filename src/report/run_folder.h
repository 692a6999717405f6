/// A run's results: outputs/<name>/<date-time>/ with everything that belongs to it.
///
///   config.json  overrides.txt  training.log  metrics.jsonl  report.html  charts/  checkpoints/  logs/
///
/// TensorBoard's events are in outputs/<name>/tensorboard/<date-time>/ (metrics_writer.h).
#pragma once
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/run_claim.h"

namespace cohort::report {

class RunFolder {
 public:
  /// Makes outputs/<name>/<date-time>/ (local time, "2026-11-21_09-30-07"). Two runs that start in the same second get
  /// folders of their own: the later one has "-2" (and so on) behind it. outputs/<name>/latest is a link to the newest.
  /// `name` may hold '/' for groups. Throws Error for a name that leaves `outputs`, or when the folder cannot be made.
  static RunFolder create(const std::filesystem::path& outputs, const std::string& name,
                          std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

  /// The folder of a run that is resumed, or whose path rank 0 has sent. Throws Error when it is no folder.
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config_file() const { return path_ / "config.json"; }
  std::filesystem::path overrides_file() const { return path_ / "overrides.txt"; }
  std::filesystem::path log_file() const { return path_ / "training.log"; }
  std::filesystem::path metrics_file() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path report_file() const { return path_ / "report.html"; }
  std::filesystem::path charts() const { return path_ / "charts"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

  /// Saves the resolved configuration (JSON text) and the overrides, one on a line. In a resumed run, a configuration
  /// that differs from the one that is there goes to config.json, and the old one stays as config.1.json (2, 3, ...);
  /// overrides are added behind a line that says when. Throws Error.
  void save_configuration(std::string_view config_json, std::span<const std::string> overrides) const;

  /// Every file in it, relative to path(), sorted; folders are walked, links are not followed.
  std::vector<std::filesystem::path> files() const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// A run's folder as the one process holds it that writes there (rank 0): nobody else can claim it meanwhile, as long as
/// this process is alive (run_claim.h). A new
/// folder goes again with its claim, unless keep() was called: a run that never began leaves nothing behind.
class ClaimedFolder {
 public:
  /// Makes a new run's folder as RunFolder::create does. Throws Error as that does.
  ClaimedFolder(const std::filesystem::path& outputs, const std::string& name);
  /// The folder of a run that is resumed; it stays in any case. Throws Error when it is no folder, or when another
  /// process trains in it.
  explicit ClaimedFolder(const std::filesystem::path& path);
  /// Without keep(), closes the log of a new folder, removes it and those above it that were made for it, and `latest`
  /// points to where it pointed before.
  ~ClaimedFolder();
  ClaimedFolder(const ClaimedFolder&) = delete;
  ClaimedFolder& operator=(const ClaimedFolder&) = delete;

  const RunFolder& folder() const { return folder_; }
  void keep() { keep_ = true; }

 private:
  void remove() const;

  // Before a new folder was made: where `latest` pointed, and which folders above it were missing, inner ones first.
  std::filesystem::path latest_before_;
  std::vector<std::filesystem::path> missing_before_;
  RunFolder folder_;
  bool keep_ = false;
  std::unique_ptr<RunClaim> claim_;
};

}  // namespace cohort::report
