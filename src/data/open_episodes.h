/// Opens episodes of whatever format lies at a path.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/episodes.h"

namespace cohort::data {

struct OpenSettings {
  std::string format = "auto";  ///< rlds, hdf5, lerobot, or auto: by what is there
  /// RLDS and LeRobot: as tfds.load takes it ("train[:95%]"); HDF5: a mask of robomimic files, which each of them must
  /// have; "" or "all": all. "auto" is train of RLDS and LeRobot, and mask/train of those HDF5 files that have one, else
  /// all demos. "whole" is train of RLDS and LeRobot, and all demos of HDF5 files, whatever masks they have.
  std::string split = "auto";
  std::string on_corrupt = "error";
  std::string checksums = "first";
  std::int64_t cache_bytes = 64 << 20;
  double tolerance_s = 1e-4;     ///< LeRobotSettings::tolerance_s
  std::string step_filter = "";  ///< steps that are left out, as keep_steps() takes it: idle(action)
  int threads = 0;
  std::string index_cache =
      "auto";  ///< RldsSettings::index_cache, Hdf5Settings::index_cache, LeRobotSettings::index_cache
};

/// A folder with meta/info.json in it is LeRobot; one with dataset_info.json in it, in its versions or in those of the only data set in it is RLDS; a .hdf5 or
/// .h5 file, a folder of such, and a .json manifest are HDF5. Throws Error saying what was looked for and what is
/// there.
std::unique_ptr<EpisodeSource> open_episodes(const std::filesystem::path& path, const OpenSettings& settings = {});

}  // namespace cohort::data
