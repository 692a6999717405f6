/// What lies where in a LeRobot data set: meta/ of the versions 2.0, 2.1 and 3.x.
///
/// Format: huggingface/lerobot, docs/source/lerobot-dataset-v3.mdx, src/lerobot/datasets/{utils,dataset_writer}.py and,
/// for 2.1, src/lerobot/scripts/convert_dataset_v21_to_v30.py.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/rlds/dataset_info.h"

namespace cohort::data {

/// Columns of meta/episodes that begin so are texts about the episode: what Cohort writes there of other formats'.
inline constexpr const char* kLeRobotNote = "metadata/";

struct LeRobotFeature {
  std::string name, dtype;              ///< dtype: float32, int64, bool, string, image, video, ...
  std::vector<std::int64_t> shape;      ///< of one step; of pictures height, width, channels, however the file has it
  bool depth = false;                   ///< a depth map
  std::vector<std::string> names = {};  ///< of the elements of numbers, where they are known
  bool pixels = false;                  ///< a picture as an array of uint8 in the tables
  bool channels_first = false;  ///< of pixels: they lie as (channels, height, width), not (height, width, channels)
};

/// Where the pictures of an episode's camera lie.
struct LeRobotVideo {
  std::size_t file = 0;       ///< of LeRobotInfo::video_files
  double begin = 0, end = 0;  ///< s, in the file; end is 0 where the data do not say it
};

struct LeRobotEpisodeInfo {
  std::int64_t number = 0;  ///< episode_index
  std::int64_t steps = 0;
  std::size_t file = 0;        ///< of LeRobotInfo::data_files
  std::int64_t first_row = 0;  ///< in the file
  std::vector<std::string> tasks;
  std::vector<LeRobotVideo> videos;     ///< by camera, in the order of LeRobotInfo::cameras
  std::vector<std::string> notes = {};  ///< in the order of LeRobotInfo::notes
};

struct LeRobotInfo {
  std::string version, robot_type;
  double fps = 0;
  std::vector<LeRobotFeature> features;
  std::vector<std::string> cameras;  ///< features of the dtype video
  std::map<std::int64_t, std::string> tasks;
  std::vector<std::string> notes = {};       ///< texts about every episode, without kLeRobotNote
  std::vector<LeRobotEpisodeInfo> episodes;  ///< by number
  std::vector<std::filesystem::path> data_files, video_files;
  /// Splits as RLDS sets have them, and the place of each one's first episode among `episodes`.
  DatasetInfo splits;
  std::map<std::string, std::int64_t> split_begins;
};

/// Whether a folder has meta/info.json.
bool holds_lerobot(const std::filesystem::path& folder);

/// Throws Error naming the file and what is missing in it or not as it should be.
LeRobotInfo read_lerobot_info(const std::filesystem::path& folder);

/// "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet" with numbers and texts put in. Throws Error naming
/// `source` for a name that is not known.
std::string fill_path(std::string_view path, const std::vector<std::pair<std::string, std::int64_t>>& numbers,
                      const std::string& video_key, const std::string& source);

/// Places among `episodes` that an expression such as train[:95%] selects; "all" and "": all.
std::vector<std::size_t> select_episodes(const LeRobotInfo& info, const std::string& expression);

}  // namespace cohort::data
