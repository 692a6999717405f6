#include "data/open_episodes.h"

#include "core/devices_cpu.h"
#include "core/error.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/kept_steps.h"
#include "data/lerobot/lerobot_episodes.h"
#include "data/lerobot/lerobot_info.h"
#include "data/local_path.h"
#include "data/rlds/rlds_episodes.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

/// Whether a folder holds RLDS data. Throws Error where it holds neither these nor HDF5 files, saying what is missing:
/// several data sets, a copy without dataset_info.json.
bool holds_rlds(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  std::string missing;
  try {
    find_dataset_folder(path);
    return true;
  } catch (const Error& e) {
    missing = e.what();
  }
  if (holds_hdf5_files(path)) return false;
  std::string sets;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_directory(error) && holds_lerobot(entry.path()))
      sets += (sets.empty() ? "" : ", ") + entry.path().string();
  COHORT_THROW_UNLESS(sets.empty(), "{} holds LeRobot data sets: name one of {}", path.string(), sets);
  const bool nothing = !find_shard(path);
  throw Error(missing + (nothing ? "; there is no .hdf5 or .h5 file in it either, nor meta/info.json (LeRobot)" : ""));
}

}  // namespace

namespace {

std::unique_ptr<EpisodeSource> open_whole_episodes(const fs::path& path, const OpenSettings& settings) {
  COHORT_THROW_UNLESS(settings.format == "auto" || settings.format == "rlds" || settings.format == "hdf5" ||
                          settings.format == "lerobot",
                      "the format of robot data is auto, rlds, hdf5 or lerobot, not '{}'", settings.format);
  need_local_path(path);
  const bool by_itself = settings.split == "auto", whole = settings.split == "whole";
  if (settings.format == "lerobot" || (settings.format == "auto" && holds_lerobot(path)))
    return std::make_unique<LeRobotEpisodes>(path, LeRobotSettings{.split = by_itself || whole       ? "train"
                                                                            : settings.split.empty() ? "all"
                                                                                                     : settings.split,
                                                                   .on_corrupt = settings.on_corrupt,
                                                                   .cache_bytes = settings.cache_bytes,
                                                                   .tolerance_s = settings.tolerance_s,
                                                                   .threads = settings.threads,
                                                                   .index_cache = settings.index_cache});
  if (settings.format == "rlds" || (settings.format == "auto" && holds_rlds(path)))
    return std::make_unique<RldsEpisodes>(path, RldsSettings{.split = by_itself || whole ? "train" : settings.split,
                                                             .on_corrupt = settings.on_corrupt,
                                                             .checksums = settings.checksums,
                                                             .cache_bytes = settings.cache_bytes,
                                                             .threads = settings.threads,
                                                             .index_cache = settings.index_cache});
  const std::string extension = path.extension().string();
  COHORT_THROW_UNLESS(
      settings.format == "hdf5" || (extension != ".parquet" && extension != ".mp4"),
      "{} is one file of a LeRobot data set: name the set's folder, which holds meta/, data/ and videos/",
      path.string());
  COHORT_THROW_UNLESS(settings.format == "hdf5" || path.filename().string().find(".tfrecord") == std::string::npos,
                      "{} is one shard of an RLDS data set: name its folder, {}", path.string(),
                      path.parent_path().empty() ? "." : path.parent_path().string());
  COHORT_THROW_UNLESS(settings.format == "hdf5" || fs::is_directory(path) || extension == ".hdf5" ||
                          extension == ".h5" || extension == ".json",
                      "{} is no robot data that is known: a folder with dataset_info.json (RLDS) or meta/info.json "
                      "(LeRobot), a .hdf5 or .h5 file, a folder of such, or a .json manifest",
                      path.string());
  const std::string mask = whole || settings.split == "all" ? "" : by_itself ? "train" : settings.split;
  return std::make_unique<Hdf5Episodes>(path, Hdf5Settings{.filter_key = mask,
                                                           .filter_key_optional = by_itself,
                                                           .on_corrupt = settings.on_corrupt,
                                                           .cache_bytes = settings.cache_bytes,
                                                           .threads = settings.threads,
                                                           .index_cache = settings.index_cache});
}

}  // namespace

std::unique_ptr<EpisodeSource> open_episodes(const fs::path& path, const OpenSettings& settings) {
  return keep_steps(open_whole_episodes(path, settings), settings.step_filter,
                    settings.threads > 0 ? settings.threads : available_cores());
}

}  // namespace cohort::data
