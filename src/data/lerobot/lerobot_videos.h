/// The videos of a camera of a LeRobot data set while it is written: episodes one behind the other, in files of a limited
/// size.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "formats/video_writer.h"

namespace cohort::data {

/// LeRobot's names of encoders and the settings that it encodes with (huggingface/lerobot, datasets/video_utils.py:
/// crf 30, every second frame a key frame): libsvtav1, h264; auto is libsvtav1 where FFmpeg's libraries have it and the
/// picture's sides are 64 pixels or more, which SVT-AV1 needs, else h264. Throws Error for another name, and where there
/// is no such encoder, with the remedy.
VideoSettings lerobot_video_settings(const std::string& vcodec, int height, int width);
/// "av1" or "h264", as meta/info.json names it.
std::string lerobot_codec_name(const VideoSettings& settings);

/// Where an episode's frames are.
struct LeRobotVideoPlace {
  std::int64_t number = 0;    ///< of the file, counted through all chunks
  double begin = 0, end = 0;  ///< s
};

class LeRobotVideos {
 public:
  /// `path` gives the file of a number.
  LeRobotVideos(std::function<std::filesystem::path(std::int64_t)> path, int height, int width, double fps,
                std::int64_t file_bytes, VideoSettings settings);
  /// An episode of so many frames, which follow.
  void begin_episode(std::int64_t frames);
  /// (height, width, 3)
  void add(std::span<const std::uint8_t> rgb);
  LeRobotVideoPlace end_episode();
  void finish();

 private:
  std::function<std::filesystem::path(std::int64_t)> path_;
  int height_, width_;
  double fps_;
  std::int64_t file_bytes_;
  VideoSettings settings_;
  std::unique_ptr<VideoWriter> writer_;
  std::int64_t number_ = -1, first_ = 0;  ///< of the file; its frames before the episode
};

}  // namespace cohort::data
