/// Video in MP4 through FFmpeg's libraries: H.264 that browsers play, or AV1.
///
///   VideoWriter video("run.mp4", 320, 240, 30);
///   for (...) video.add(frame.rgb);   // (240, 320, 3) uint8, row 0 at the top
///   video.finish();
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace cohort {

/// Why no video is written here by this encoder of FFmpeg's; "" where it is.
std::string video_unavailable(const std::string& encoder = "libx264");

struct VideoSettings {
  std::string encoder = "libx264";  ///< FFmpeg's name of it: libx264, libsvtav1
  std::string preset = "veryfast";  ///< of the encoder
  int crf = 20;                     ///< quality: 0 is the best; to 51 of H.264, to 63 of AV1
  int key_every = 0;                ///< frames from key frame to key frame; 0: those of two seconds
  bool independent_parts = false;   ///< whether cut() may be called; then no frame refers to a later one
};

/// Writes aside and puts the file in place with finish(): without it nothing remains. YUV 4:2:0, 8 bits, its index at
/// the front. A side of an odd length gets a black row or column at the end, because 4:2:0 needs even ones.
class VideoWriter {
 public:
  /// Throws Error for a name that does not end in .mp4, sides or rates that make no video, a place that cannot be
  /// written, and a build without FFmpeg's libraries or a system without the encoder.
  VideoWriter(const std::filesystem::path& path, int width, int height, double fps, const VideoSettings& settings = {});
  ~VideoWriter();
  VideoWriter(const VideoWriter&) = delete;
  VideoWriter& operator=(const VideoWriter&) = delete;

  /// A picture, (height, width, 3). Throws Error when it cannot be written (a full disk, say).
  void add(std::span<const std::uint8_t> rgb);
  /// Ends a part, where settings.independent_parts: the next picture begins another, coded as if it were alone, and
  /// bytes() counts all that came before. Throws Error as add() does.
  void cut();
  /// Puts the file in place. Nothing may be called after it. Throws Error; also for a video without a picture.
  void finish();
  std::int64_t frames() const;
  /// Of the file as it has grown so far, without what the encoder still keeps back.
  std::int64_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
