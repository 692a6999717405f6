#include "data/images/colour.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cohort::data {
namespace {

struct Hsv {
  float hue, saturation, value;  // all in [0, 1]
};

Hsv to_hsv(const float* rgb) {
  const float high = std::max({rgb[0], rgb[1], rgb[2]}), low = std::min({rgb[0], rgb[1], rgb[2]});
  const float range = high - low;
  float hue = 0;
  if (range > 0) {
    if (high == rgb[0])
      hue = (rgb[1] - rgb[2]) / range;
    else if (high == rgb[1])
      hue = 2 + (rgb[2] - rgb[0]) / range;
    else
      hue = 4 + (rgb[0] - rgb[1]) / range;
    hue /= 6;
    if (hue < 0) hue += 1;
  }
  return {hue, high > 0 ? range / high : 0, high};
}

void from_hsv(const Hsv& hsv, float* rgb) {
  const float chroma = hsv.value * hsv.saturation, low = hsv.value - chroma, sixth = hsv.hue * 6;
  const std::array<float, 3> ramps{std::abs(sixth - 3) - 1, 2 - std::abs(sixth - 2), 2 - std::abs(sixth - 4)};
  for (std::size_t c = 0; c < 3; ++c) rgb[c] = low + chroma * std::clamp(ramps[c], 0.0f, 1.0f);
}

}  // namespace

void adjust_brightness(std::span<float> rgb, float amount) {
  for (float& value : rgb) value += amount;
}

void adjust_contrast(std::span<float> rgb, float factor) {
  std::array<double, 3> sums{};
  for (std::size_t i = 0; i + 2 < rgb.size(); i += 3)
    for (std::size_t c = 0; c < 3; ++c) sums[c] += static_cast<double>(rgb[i + c]);
  for (std::size_t c = 0; c < 3; ++c) {
    const auto mean = static_cast<float>(sums[c] / static_cast<double>(rgb.size() / 3));
    for (std::size_t i = c; i < rgb.size(); i += 3) rgb[i] = (rgb[i] - mean) * factor + mean;
  }
}

void adjust_saturation(std::span<float> rgb, float factor) {
  for (std::size_t i = 0; i + 2 < rgb.size(); i += 3) {
    Hsv hsv = to_hsv(&rgb[i]);
    hsv.saturation = std::clamp(hsv.saturation * factor, 0.0f, 1.0f);
    from_hsv(hsv, &rgb[i]);
  }
}

void adjust_hue(std::span<float> rgb, float amount) {
  for (std::size_t i = 0; i + 2 < rgb.size(); i += 3) {
    Hsv hsv = to_hsv(&rgb[i]);
    hsv.hue += amount;
    hsv.hue -= std::floor(hsv.hue);
    from_hsv(hsv, &rgb[i]);
  }
}

}  // namespace cohort::data
