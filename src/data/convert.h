/// Robot data from one format and schema into another.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

struct ConvertSettings {
  std::string to = "rlds";             ///< rlds or hdf5 (robomimic's layout)
  std::string name = "robot_data";     ///< of an RLDS data set
  std::string image_encoding = "png";  ///< of raw images going to RLDS: png (exact) or jpeg (quality 95)
  /// Names as the other format's users know them: obs/… <-> observation/…, actions <-> action, rewards <-> reward,
  /// dones <-> is_terminal.
  bool rename = true;
  std::vector<std::int64_t> episodes;  ///< these only; empty: all
};

/// What came of it.
struct ConvertReport {
  std::filesystem::path path;
  std::int64_t episodes = 0, steps = 0;
  std::vector<std::string> left_out;  ///< fields that the other format cannot hold, with the reason
};

/// Writes to `out`: for rlds the folder that gets name/1.0.0, for hdf5 the file. JPEG and PNG frames go to RLDS as they
/// are, to HDF5 decoded. RLDS holds float64 as float32, as tensorflow-datasets stores it. A text of the steps becomes
/// an attribute of the demo. Nothing is at the destination unless all of it is.
ConvertReport convert_episodes(const EpisodeSource& source, const std::filesystem::path& out,
                               const ConvertSettings& settings);

}  // namespace cohort::data
