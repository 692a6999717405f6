/// The folder of a run's checkpoints: which of them are whole, which is the last, which may go.
///
///   checkpoints/checkpoint-500/{model.safetensors, ema/model.safetensors, optimizer.safetensors, trainer_state.json,
///                               rng.safetensors, dataset_statistics.json, checksums.json}
///   checkpoints/last -> checkpoint-500        checkpoints/best -> checkpoint-300
///
/// A checkpoint is written under the name .checkpoint-500.tmp and renamed when every file and folder has been synced: a
/// folder without a dot is whole, whenever the machine stops.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cohort::weights {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kEmaFile = "ema/model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kStateFile = "trainer_state.json";
inline constexpr const char* kRandomFile = "rng.safetensors";
inline constexpr const char* kStatisticsFile = "dataset_statistics.json";

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path checkpoint(std::int64_t step) const;

  /// Where a checkpoint is built: an empty folder. Throws Error with path and reason.
  std::filesystem::path begin(std::int64_t step) const;
  /// Syncs the folders of what begin() gave, gives it its name, and points `last` (and `best`) to it. A checkpoint of
  /// the same step, from a run that is being repeated, is replaced. Throws Error where the checkpoint itself cannot be
  /// put in place; links that cannot be set, and what cannot be removed, are warned of.
  void commit(std::int64_t step, bool is_best) const;

  /// Steps of the checkpoints, rising.
  std::vector<std::int64_t> steps() const;
  /// The steps to which `last` and `best` point.
  std::optional<std::int64_t> last() const { return step_of_link("last"); }
  std::optional<std::int64_t> best() const { return step_of_link("best"); }

  /// Removes what a killed run left half-written, and finishes an exchange that it did not get to finish. Returns how
  /// many folders were removed. Only for the one process that writes here.
  int clean() const;
  /// Before a training writes here: where a copy without links (scp -r, zip, object stores) has made folders of `last`
  /// and `best`, they become links again. Warns of what would keep the first save from setting them. Only for the one
  /// process that writes here.
  void restore_links() const;
  /// Removes checkpoints until `keep` are left (0: keeps all): first those of later steps than `last`, which are of a
  /// training that has been begun anew, then the oldest; never those to which `last` or `best` point.
  void prune(std::int64_t keep) const;

 private:
  std::optional<std::int64_t> step_of_link(const char* link) const;
  void point(const char* link, std::int64_t step) const;
  std::filesystem::path aside(std::int64_t step, const char* purpose) const;

  std::filesystem::path folder_;
};

}  // namespace cohort::weights
