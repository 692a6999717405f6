/// What a rank of a job is doing, in a small file that `cohort top` and `cohort doctor` read while it runs and after.
///
///   monitor::RankStatusFile file(run / monitor::kRanksFolder, 0);
///   status.step = 17;
///   file.write(status);                        // replaced in one step; nobody reads half a file
///   for (const auto& rank : monitor::read_rank_statuses(run / monitor::kRanksFolder)) ...
///
/// The file is <run>/ranks/rank_<N>.json. Its folder stays open in the writer, so that the ranks of this machine are
/// found by what their processes hold open (local_ranks), wherever the run's folder lies.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace cohort::monitor {

inline constexpr const char* kRanksFolder = "ranks";

/// Numbers that are not known are NaN; seconds per step are means since the beat before.
struct RankStatus {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int rank = 0;
  int world_size = 1;
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t started = 0;  ///< field 22 of /proc/PID/stat: tells the process from a later one with its number
  std::string job;            ///< "regressor"
  std::string device;         ///< "cuda:1", "cpu"
  std::string state;          ///< starting, training, validating, saving, finished, stopped, failed
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

  bool ended() const { return state == "finished" || state == "stopped" || state == "failed"; }
};

std::string to_json(const RankStatus& status);
/// nullopt for a text that is none.
std::optional<RankStatus> parse_rank_status(const std::string& text);

/// All of a folder by rank; files that are damaged or none are left out. An absent folder is empty.
std::vector<RankStatus> read_rank_statuses(const std::filesystem::path& folder);

class RankStatusFile {
 public:
  /// Makes the folder in a run's that is there. Never throws: what cannot be written is not watched, and error() says
  /// why.
  RankStatusFile(std::filesystem::path folder, int rank);
  ~RankStatusFile();
  RankStatusFile(const RankStatusFile&) = delete;
  RankStatusFile& operator=(const RankStatusFile&) = delete;

  void write(const RankStatus& status);
  const std::string& error() const { return error_; }

 private:
  std::string name_, error_;
  int folder_ = -1;  ///< open, see above
};

/// Host, process id and start time of this process.
void identify_process(RankStatus& status);

}  // namespace cohort::monitor
