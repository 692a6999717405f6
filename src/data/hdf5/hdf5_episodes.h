/// Episodes in HDF5 files: robomimic's and LIBERO's (`data/demo_*` in one file, names of subsets in `mask`), and
/// DROID's (one file per trajectory, listed by a manifest), and several episodes one behind the other in the same arrays
/// (D4RL's, hdf5/episode_cuts.h).
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/episodes.h"

namespace cohort::config {
class Fields;
}

namespace cohort::data {

struct Hdf5Settings {
  std::string filter_key;            ///< of robomimic files: only the demos that mask/<filter_key> names; empty: all
  bool filter_key_optional = false;  ///< a file without this mask gives all its demos; else that is an error
  /// error; or skip: read everything once, leave episodes out that are damaged or lack what most have, and name them
  std::string on_corrupt = "error";
  /// Memory of opened episodes that is kept for reuse, a quarter of it for what is known of where their arrays lie.
  std::int64_t cache_bytes = 64 << 20;
  int threads = 0;                    ///< for on_corrupt=skip; 0: as many as the process has cores
  std::string index_cache = "never";  ///< where it is kept which episodes are damaged: as EpisodeNotes takes it
};

void describe(config::Fields& fields, Hdf5Settings& settings);

/// Whether a .hdf5 or .h5 file lies anywhere below a folder.
bool holds_hdf5_files(const std::filesystem::path& folder);

/// A step has every array of numbers with a row per step (hdf5/episode_layout.h) in the first and in the last episode;
/// with on_corrupt=skip in those episodes that most are like. A row more, the observation after the last action, is not
/// used, which selection() says. Arrays of uint8 (height, width, 1 or 3) or (1 or 3, height, width) are images.
/// Attributes of the file, of `data` and of the demo are metadata; LIBERO's instruction (problem_info) is the metadata
/// language_instruction. Demos are ordered by the number in their name.
class Hdf5Episodes final : public EpisodeSource {
 public:
  /// `path`: a file; a folder (all .hdf5 and .h5 files below it, by name); or a manifest, a JSON list of paths or of
  /// objects with `path` (relative to the manifest) whose other texts become metadata. Throws Error naming file, group
  /// and field for what is missing.
  explicit Hdf5Episodes(const std::filesystem::path& path, const Hdf5Settings& settings = {});
  ~Hdf5Episodes() override;

  /// "data/demo_0" of the file, or the file of a single trajectory.
  std::string episode_name(std::int64_t episode) const;
  /// The file and the group in it: "/data/demo_0", or "/" of a single trajectory; of several in one group with their
  /// steps there: "/[200:400]".
  std::pair<std::filesystem::path, std::string> place(std::int64_t episode) const override;
  const std::string& name() const override;
  std::int64_t size() const override;
  const std::vector<StepField>& fields() const override;
  const std::vector<std::string>& metadata_names() const override;
  std::int64_t steps(std::int64_t episode) const override;
  std::shared_ptr<const Episode> open(std::int64_t episode) const override;
  std::int64_t bytes_when_open(std::int64_t episode, std::span<const std::size_t> fields) const override;
  /// Of names (below the folder or beside the manifest), sizes, times of change and first MiB of the files, and of the
  /// manifest's texts: HDF5 holds no checksums of its content.
  std::uint64_t content_hash() const override;
  std::int64_t bytes_held() const override;
  std::int64_t stored_bytes() const override;
  std::string selection() const override;
  std::vector<std::string> left_out() const override;
  std::string why_no_field(const std::string& field_name) const override;
  const std::vector<std::string>& skipped() const override;
  std::string_view format_name() const override { return "hdf5"; }
  std::vector<MetadataType> metadata_types(std::int64_t episode, std::vector<std::string>& left_out) const override;
  bool states_colours() const override { return false; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
