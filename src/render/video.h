/// Video (core/video_writer.h) with text on the pictures and several environments side by side.
///
///   render::VideoWriter video("run.mp4", 320, 240, 30);
///   for (...) video.add(frame.rgb.data());   // (240, 320, 3) uint8, row 0 at the top
///   video.finish();
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/video_writer.h"

namespace cohort::render {

using cohort::video_unavailable;
using cohort::VideoWriter;

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
