#include "data/images/canvas.h"

#include <algorithm>
#include <cmath>

namespace cohort::data {
namespace {

/// Rows of three dots, top to bottom, as octal digits: 4 left, 2 middle, 1 right.
struct Letter {
  char character;
  std::array<std::uint8_t, 5> rows;
};
constexpr Letter kLetters[] = {
    {'0', {7, 5, 5, 5, 7}}, {'1', {2, 6, 2, 2, 7}}, {'2', {7, 1, 7, 4, 7}}, {'3', {7, 1, 3, 1, 7}},
    {'4', {5, 5, 7, 1, 1}}, {'5', {7, 4, 7, 1, 7}}, {'6', {7, 4, 7, 5, 7}}, {'7', {7, 1, 1, 2, 2}},
    {'8', {7, 5, 7, 5, 7}}, {'9', {7, 5, 7, 1, 7}}, {'A', {2, 5, 7, 5, 5}}, {'B', {6, 5, 6, 5, 6}},
    {'C', {3, 4, 4, 4, 3}}, {'D', {6, 5, 5, 5, 6}}, {'E', {7, 4, 6, 4, 7}}, {'F', {7, 4, 6, 4, 4}},
    {'G', {3, 4, 5, 5, 3}}, {'H', {5, 5, 7, 5, 5}}, {'I', {7, 2, 2, 2, 7}}, {'J', {1, 1, 1, 5, 2}},
    {'K', {5, 5, 6, 5, 5}}, {'L', {4, 4, 4, 4, 7}}, {'M', {5, 7, 7, 5, 5}}, {'N', {6, 5, 5, 5, 5}},
    {'O', {2, 5, 5, 5, 2}}, {'P', {6, 5, 6, 4, 4}}, {'Q', {2, 5, 5, 6, 3}}, {'R', {6, 5, 6, 5, 5}},
    {'S', {3, 4, 2, 1, 6}}, {'T', {7, 2, 2, 2, 2}}, {'U', {5, 5, 5, 5, 7}}, {'V', {5, 5, 5, 5, 2}},
    {'W', {5, 5, 7, 7, 5}}, {'X', {5, 5, 2, 5, 5}}, {'Y', {5, 5, 2, 2, 2}}, {'Z', {7, 1, 2, 4, 7}},
    {'.', {0, 0, 0, 0, 2}}, {',', {0, 0, 0, 2, 4}}, {':', {0, 2, 0, 2, 0}}, {'-', {0, 0, 7, 0, 0}},
    {'+', {0, 2, 7, 2, 0}}, {'/', {1, 1, 2, 4, 4}}, {'_', {0, 0, 0, 0, 7}}, {'(', {1, 2, 2, 2, 1}},
    {')', {4, 2, 2, 2, 4}}, {'[', {3, 2, 2, 2, 3}}, {']', {6, 2, 2, 2, 6}}, {'=', {0, 7, 0, 7, 0}},
    {'%', {5, 1, 2, 4, 5}}, {'!', {2, 2, 2, 0, 2}}, {'?', {7, 1, 2, 0, 2}}, {'\'', {2, 2, 0, 0, 0}},
    {' ', {0, 0, 0, 0, 0}},
};

std::array<std::uint8_t, 5> dots_of(char c) {
  const char capital = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  for (const Letter& letter : kLetters)
    if (letter.character == capital) return letter.rows;
  return {7, 7, 7, 7, 7};
}

}  // namespace

Canvas::Canvas(std::int64_t height, std::int64_t width, Colour background) {
  image_.resize(height, width, 3);
  fill(0, 0, height, width, background);
}

void Canvas::dot(std::int64_t y, std::int64_t x, Colour colour) {
  if (y < 0 || x < 0 || y >= image_.height || x >= image_.width) return;
  std::copy(colour.begin(), colour.end(), image_.row(y) + 3 * x);
}

void Canvas::fill(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Colour colour) {
  for (std::int64_t y = std::max<std::int64_t>(top, 0); y < std::min(top + height, image_.height); ++y)
    for (std::int64_t x = std::max<std::int64_t>(left, 0); x < std::min(left + width, image_.width); ++x)
      dot(y, x, colour);
}

void Canvas::paste(const Image& image, std::int64_t top, std::int64_t left) {
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      const std::uint8_t* pixel = image.row(y) + x * image.channels;
      dot(top + y, left + x,
          image.channels == 3 ? Colour{pixel[0], pixel[1], pixel[2]} : Colour{pixel[0], pixel[0], pixel[0]});
    }
}

void Canvas::line(double x0, double y0, double x1, double y1, Colour colour) {
  const double length = std::max(std::abs(x1 - x0), std::abs(y1 - y0));
  const auto count = static_cast<std::int64_t>(std::ceil(length)) + 1;
  for (std::int64_t i = 0; i <= count; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(count);
    dot(std::lround(y0 + part * (y1 - y0)), std::lround(x0 + part * (x1 - x0)), colour);
  }
}

void Canvas::text(std::int64_t top, std::int64_t left, std::string_view words, Colour colour, std::int64_t scale) {
  for (const char c : words) {
    const auto rows = dots_of(c);
    for (std::size_t y = 0; y < 5; ++y)
      for (std::int64_t x = 0; x < 3; ++x)
        if ((rows[y] >> (2 - x)) & 1)
          fill(top + static_cast<std::int64_t>(y) * scale, left + x * scale, scale, scale, colour);
    left += 4 * scale;
  }
}

void Canvas::curve(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width,
                   std::span<const float> values, float low, float high, Colour colour) {
  if (values.empty()) return;
  const double range = std::max(static_cast<double>(high - low), 1e-9);
  const auto x_of = [&](std::size_t i) {
    return static_cast<double>(left) + (values.size() == 1 ? 0.0
                                                           : static_cast<double>(i) * static_cast<double>(width - 1) /
                                                                 static_cast<double>(values.size() - 1));
  };
  const auto y_of = [&](float value) {
    return static_cast<double>(top + height - 1) -
           (static_cast<double>(value - low) / range) * static_cast<double>(height - 1);
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const bool joined = i + 1 < values.size() && std::isfinite(values[i + 1]);
    const std::size_t next = joined ? i + 1 : i;
    line(x_of(i), y_of(values[i]), x_of(next), y_of(values[next]), colour);
  }
}

}  // namespace cohort::data
