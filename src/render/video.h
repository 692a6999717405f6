/// Video: H.264 in MP4 that browsers play, through FFmpeg's libraries, with text on the pictures and several
/// environments side by side.
///
///   render::VideoWriter video("run.mp4", 320, 240, 30);
///   for (...) video.add(frame.rgb.data());   // (240, 320, 3) uint8, row 0 at the top
///   video.finish();
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cohort::render {

/// Why this build writes no video; "" where it does.
std::string video_unavailable();

/// Writes aside and puts the file in place with finish(): without it nothing remains. YUV 4:2:0, 8 bits, its index at
/// the front. A side of an odd length gets a black row or column at the end, because 4:2:0 needs even ones.
class VideoWriter {
 public:
  /// Throws Error for a name that does not end in .mp4, sides or rates that make no video, a place that cannot be
  /// written, and a build without FFmpeg's libraries or a system without the encoder libx264.
  VideoWriter(const std::filesystem::path& path, int width, int height, double fps);
  ~VideoWriter();
  VideoWriter(const VideoWriter&) = delete;
  VideoWriter& operator=(const VideoWriter&) = delete;

  /// A picture, (height, width, 3). Throws Error when it cannot be written (a full disk, say).
  void add(std::span<const std::uint8_t> rgb);
  /// Puts the file in place. Nothing may be called after it. Throws Error; also for a video without a picture.
  void finish();
  std::int64_t frames() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// An RGB picture in memory that somebody else owns.
struct Image {
  std::span<std::uint8_t> rgb;  ///< (height, width, 3)
  int width = 0, height = 0;
};

/// Writes text onto a picture: white on a dark ground, 6 x 9 pixels a letter times `scale`, at (x, y), the left upper
/// corner. What does not fit is cut off. Printable ASCII and '\n'; anything else is drawn as '?'.
void draw_text(const Image& image, int x, int y, const std::string& text, int scale = 1);

/// Pictures side by side in rows.
struct Mosaic {
  int columns = 0, rows = 0;
  int width = 0, height = 0;  ///< of the whole
};
/// As square as possible for `count` pictures of that size.
Mosaic mosaic_of(int count, int width, int height);
/// Puts (count, height, width, 3) into the whole, (mosaic.height, mosaic.width, 3); places without a picture are black.
void tile(const Mosaic& mosaic, std::span<const std::uint8_t> pictures, int count, std::span<std::uint8_t> whole);

/// Writes a PNG. Throws Error for a place that cannot be written.
void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> rgb, int width, int height);

}  // namespace cohort::render
