/// What a rank of a job is doing, in a small file that `cohort top` and `cohort doctor` read while it runs and after.
///
///   StatusFile file(run / kRanksFolder, 0);
///   status.step = 17;
///   file.write(status);                        // replaced in one step; nobody reads half a file
///   for (const auto& rank : read_statuses(run / kRanksFolder)) ...
///
/// The file is <run>/ranks/rank_<N>.json. Its folder stays open in the writer, so that the ranks of this machine are
/// found by what their processes hold open (monitor/snapshot.h), wherever the run's folder lies.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rank/phase.h"

namespace cohort::rank {

inline constexpr const char* kRanksFolder = "ranks";

/// Numbers that are not known are NaN; seconds per step are means since the beat before.
struct Status {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int rank = 0;
  int world_size = 1;
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t started = 0;  ///< field 22 of /proc/PID/stat: tells the process from a later one with its number
  std::string job;            ///< "regressor"
  std::string device;         ///< "cuda:1", "cpu"
  Phase phase = Phase::kStart;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  std::int64_t batches_per_epoch = 0;
  std::int64_t batch_size = 0;  ///< of this process
  double steps_per_s = kUnknown;
  double samples_per_s = kUnknown;  ///< of this process
  double step_s = kUnknown;
  double data_s = kUnknown;        ///< a step waited for data
  double exchange_s = kUnknown;    ///< a step exchanged gradients, and waited for other ranks therein
  double seconds_left = kUnknown;  ///< of the training
  std::uint64_t host_bytes = 0;    ///< resident memory
  std::uint64_t device_bytes = 0;  ///< peak that this rank allocated on its device
  double time = 0;                 ///< of the last beat, seconds since 1970 of the rank's machine

  bool ended() const { return phase >= Phase::kFinished; }
};

std::string to_json(const Status& status);
/// nullopt for a text that is none.
std::optional<Status> parse_status(const std::string& text);

/// All of a folder by rank; files that are damaged or none are left out. An absent folder is empty.
std::vector<Status> read_statuses(const std::filesystem::path& folder);

class StatusFile {
 public:
  /// Makes the folder in a run's that is there. Never throws: what cannot be written is not watched, and error() says
  /// why.
  StatusFile(std::filesystem::path folder, int rank);
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  void write(const Status& status);
  const std::string& error() const { return error_; }

 private:
  std::string name_, error_;
  int folder_ = -1;  ///< open, see above
};

}  // namespace cohort::rank
