/// Drawing into an RGB image: what a contact sheet needs. Coordinates in pixels from the upper left; what lies outside
/// is cut off.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/images/codec.h"

namespace cohort::data {

using Colour = std::array<std::uint8_t, 3>;

class Canvas {
 public:
  Canvas(std::int64_t height, std::int64_t width, Colour background);

  void fill(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Colour colour);
  /// `image` has 1 or 3 channels.
  void paste(const Image& image, std::int64_t top, std::int64_t left);
  void line(double x0, double y0, double x1, double y1, Colour colour);
  /// Letters of 5 x 3 dots, each `scale` pixels wide; ASCII, small letters as capitals, anything else as a box.
  void text(std::int64_t top, std::int64_t left, std::string_view words, Colour colour, std::int64_t scale = 2);
  /// A curve over its own range, in a frame; values that are not finite are left out.
  void curve(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width,
             std::span<const float> values, float low, float high, Colour colour);
  const Image& image() const { return image_; }

 private:
  void dot(std::int64_t y, std::int64_t x, Colour colour);
  Image image_;
};

}  // namespace cohort::data
