/// Robot data from one format and schema into another.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

/// What only LeRobot data sets have.
struct LeRobotConvertSettings {
  double fps = 0;                ///< steps per second; 0: what the data say, else 30, which is said
  std::string images = "video";  ///< video (lossy); or image: PNGs and JPEGs in the tables, every pixel as it was
  std::string vcodec = "auto";   ///< of videos: auto, libsvtav1, h264, as lerobot_video_settings() takes it
  std::vector<std::string> state = {};   ///< components (transforms/component.h) of observation.state
  std::vector<std::string> action = {};  ///< and of action; empty: the field that is called so
  /// What the elements of a feature are called, by its name in LeRobot, where the data do not say it.
  std::map<std::string, std::vector<std::string>> names = {};
  std::string task = "";     ///< of all episodes; empty: what the data say
  bool keep_videos = false;  ///< of LeRobot sets: their video files are copied, not coded again
  std::vector<std::pair<std::string, std::string>> renamed = {};   ///< features: from, to
  std::vector<std::pair<std::string, std::string>> retasked = {};  ///< texts of tasks: from, to
  bool keep_float64 = false;  ///< else they become float32, which LeRobot's policies take
  std::int64_t data_files_size_in_mb = 100, video_files_size_in_mb = 200;  ///< LeRobot's names and defaults, MiB
};

struct ConvertSettings {
  std::string to = "rlds";             ///< rlds, hdf5 (robomimic's layout) or lerobot (3.0)
  std::string name = "robot_data";     ///< of an RLDS data set
  std::string image_encoding = "png";  ///< of raw images going to RLDS: png (exact) or jpeg (quality 95)
  /// Names as the other format's users know them: obs/… <-> observation/…, actions <-> action, rewards <-> reward,
  /// dones <-> is_terminal; from LeRobot observation.… -> observation/…, next.reward -> reward, next.done ->
  /// is_terminal, task -> language_instruction, other dots -> _; to LeRobot obs/… and observation/… -> observation.…,
  /// pictures observation.images.…, actions -> action, rewards -> next.reward, dones -> next.done.
  bool rename = true;
  std::vector<std::int64_t> episodes;  ///< these only; empty: all
  std::string env_args;                ///< JSON: robomimic's env_args, where the source has none; empty: says so
  LeRobotConvertSettings lerobot = {};
};

/// What came of it.
struct ConvertReport {
  std::filesystem::path path;
  std::int64_t episodes = 0, steps = 0;
  /// What the source has and the other format cannot hold, or does not hold as it was, with the reason.
  std::vector<std::string> left_out;
  /// What was chosen or assumed: "fps: 30 is assumed, …".
  std::vector<std::string> said = {};
};

/// Writes to `out`: for rlds the folder that gets name/1.0.0, for hdf5 the file, for lerobot the data set's folder. From RLDS to RLDS records are copied
/// as they are. To HDF5 frames are decoded, and a text of the steps becomes an attribute of the demo, or a data set of
/// texts where it changes within an episode. RLDS holds float64 as float32, as tensorflow-datasets stores it, and the
/// flags is_first, is_last and is_terminal as bools. Nothing is at the destination unless all of it is.
ConvertReport convert_episodes(const EpisodeSource& source, const std::filesystem::path& out,
                               const ConvertSettings& settings);

}  // namespace cohort::data
