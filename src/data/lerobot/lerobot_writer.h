/// Writes a LeRobot data set, version 3.0: what lerobot.datasets.LeRobotDataset(repo_id, root=FOLDER) reads.
///
///   LeRobotWriter out("set", {{"action", "float32", {7}}, {"observation.images.front", "video", {128, 128, 3}}},
///                     {.fps = 20});
///   out.begin_episode(50);
///   out.add(0, std::as_bytes(std::span(actions)));               // (50, 7)
///   for (...) out.add_picture(1, stored);                         // 50 times
///   out.end_episode(std::vector<std::string>(50, "open the drawer"));
///   out.finish();
///
/// Format: huggingface/lerobot 0.4.4, docs/source/lerobot-dataset-v3.mdx and src/lerobot/datasets/{lerobot_dataset,utils,
/// compute_stats,video_utils}.py. A row group of data/ is an episode. Numbers and texts lie in the tables as they came,
/// pictures of the dtype image as their files' bytes; video is lossy.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/episodes.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_statistics.h"

namespace cohort::data {

struct LeRobotWriterSettings {
  double fps = 30;                           ///< steps per second, > 0
  std::string robot_type = "";               ///< empty: not known
  std::string vcodec = "auto";               ///< of features of the dtype video: lerobot_video_settings()
  bool keep_videos = false;                  ///< they exist: keep_video() takes the place of add_picture()
  std::int64_t chunks_size = 1000;           ///< files in a folder
  std::int64_t data_files_size_in_mb = 100;  ///< MiB, at which another file is begun
  std::int64_t video_files_size_in_mb = 200;
};

class LeRobotWriter {
 public:
  /// `features`: dtype a number's name as NumPy has it, bool, string, image or video; shape of one step, {1} of a value;
  /// those that every set has (timestamp, frame_index, episode_index, index, task_index) are added. `notes`: names of
  /// texts about every episode, which become columns of meta/episodes.
  /// Throws Error naming the feature that LeRobot cannot hold; where the folder holds something; where Arrow, FFmpeg's
  /// libraries or an encoder is missing, with the remedy.
  LeRobotWriter(const std::filesystem::path& folder, std::vector<LeRobotFeature> features,
                const LeRobotWriterSettings& settings, std::vector<std::string> notes = {});
  /// Without finish() nothing is left.
  ~LeRobotWriter();
  LeRobotWriter(const LeRobotWriter&) = delete;
  LeRobotWriter& operator=(const LeRobotWriter&) = delete;

  void begin_episode(std::int64_t steps);
  /// All steps of a number feature, contiguous, in the feature's type; a bool is a byte.
  void add(std::size_t feature, std::span<const std::byte> values);
  void add_texts(std::size_t feature, std::vector<std::string> texts);
  /// The next step's picture. Throws Error where it is not of the feature's size.
  void add_picture(std::size_t feature, const StoredImage& picture);
  /// The episode's frames of a feature of the dtype video are those of `file` from begin to end (s). The file is copied
  /// once, whole, and nothing is coded again. `sampled`: its pictures at sampled_frames(), for the statistics.
  void keep_video(std::size_t feature, const std::filesystem::path& file, double begin, double end,
                  const PictureStatistics& sampled);
  /// `tasks`: of every step. `notes`: in the order of the constructor's.
  void end_episode(const std::vector<std::string>& tasks, const std::vector<std::string>& notes = {});
  /// Writes meta/ and moves everything into place. Throws Error for a set without an episode.
  void finish();

  /// Of the features of the dtype video: "av1", "h264" or "av1, h264"; empty without one.
  std::string codecs() const;
  /// Features with values that are not finite, which their statistics pass over.
  std::vector<std::string> not_finite() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
