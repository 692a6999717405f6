#include "data/open_episodes.h"

#include "core/error.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/rlds/rlds_episodes.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

bool looks_like_rlds(const fs::path& path) {
  if (!fs::is_directory(path)) return false;
  try {
    find_dataset_folder(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<EpisodeSource> open_episodes(const fs::path& path, const OpenSettings& settings) {
  COHORT_THROW_UNLESS(settings.format == "auto" || settings.format == "rlds" || settings.format == "hdf5",
                      "the format of robot data is auto, rlds or hdf5, not '{}'", settings.format);
  std::error_code error;
  COHORT_THROW_UNLESS(fs::exists(path, error), "there is no file or folder {}", path.string());
  if (settings.format == "rlds" || (settings.format == "auto" && looks_like_rlds(path)))
    return std::make_unique<RldsEpisodes>(path, RldsSettings{.split = settings.split,
                                                             .on_corrupt = settings.on_corrupt,
                                                             .checksums = settings.checksums,
                                                             .cache_bytes = settings.cache_bytes,
                                                             .threads = settings.threads,
                                                             .index_cache = settings.index_cache});
  const std::string extension = path.extension().string();
  COHORT_THROW_UNLESS(settings.format == "hdf5" || fs::is_directory(path) || extension == ".hdf5" ||
                          extension == ".h5" || extension == ".json",
                      "{} is no robot data that is known: a folder with dataset_info.json (RLDS), a .hdf5 or .h5 file, "
                      "a folder of such, or a .json manifest",
                      path.string());
  // "train" is every RLDS set's first split, but in HDF5 a mask that a file need not have.
  return std::make_unique<Hdf5Episodes>(path, Hdf5Settings{.filter_key = settings.split == "all" ? "" : settings.split,
                                                           .filter_key_optional = settings.split == "train",
                                                           .on_corrupt = settings.on_corrupt,
                                                           .cache_bytes = settings.cache_bytes,
                                                           .threads = settings.threads,
                                                           .index_cache = settings.index_cache});
}

}  // namespace cohort::data
