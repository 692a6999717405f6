/// Single frames of videos, by their time: H.264, AV1 and what else FFmpeg's libraries here decode.
///
///   VideoFrames videos(64 << 20);
///   const VideoFrame frame = videos.read("file-000.mp4", 12.3, kFrameTolerance, rgb);   // rgb: (height, width, 3)
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace cohort::data {

/// How far from the asked time a frame's own time may lie where nothing else is said, s: LeRobot's tolerance_s.
inline constexpr double kFrameTolerance = 1e-4;

struct VideoFrame {
  std::int64_t height = 0, width = 0;
  double time = 0;  ///< s, as the file says it
};

/// What a file says about its video.
struct VideoSummary {
  std::int64_t height = 0, width = 0;
  double end = 0;           ///< s, where the last frame ends; 0 where it is not said
  double begin = 0;         ///< s, where the first frame begins
  std::int64_t frames = 0;  ///< 0 where it is not said
  std::string codec = {};   ///< FFmpeg's name: h264, av1, ...
};

/// What the container's index says, without decoding anything: cheap for thousands of files. Throws Error naming the
/// file where it is missing, empty, cut so that its index is lost, or no video.
VideoSummary read_video_index(const std::filesystem::path& file);

/// Keeps decoders open, so that frames one after another are decoded one after another. A frame that lies ahead is
/// decoded towards from where a decoder stands, unless a key frame lies between; else from the key frame before it.
/// All functions may be called from several threads. They throw Error naming file and time: for a file that is missing
/// or damaged, where no frame lies within the tolerance, without FFmpeg's libraries or a decoder for the video.
class VideoFrames {
 public:
  /// `idle_bytes`: about how much memory decoders that nobody uses may keep; the one used last is always kept.
  explicit VideoFrames(std::int64_t idle_bytes);
  ~VideoFrames();

  /// The frame whose time is `seconds` give or take `tolerance`; its pixels as (height, width, 3), uint8.
  VideoFrame read(const std::filesystem::path& file, double seconds, double tolerance, std::string& rgb) const;
  VideoSummary look(const std::filesystem::path& file) const;
  /// About the bytes that idle decoders hold.
  std::int64_t bytes() const;
  /// How often a decoder went to a key frame.
  std::int64_t seeks() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Why no video is read here; "" where it is.
std::string video_frames_unavailable();

}  // namespace cohort::data
