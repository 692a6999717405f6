/// Changes of colour, with tf.image's formulas, on float RGB in [0, 1]: (pixels, 3), in place, not clipped.
#pragma once
#include <span>

namespace cohort::data {

/// x + amount.
void adjust_brightness(std::span<float> rgb, float amount);
/// (x - mean of the channel) · factor + mean.
void adjust_contrast(std::span<float> rgb, float factor);
/// The saturation of HSV times factor, at most 1.
void adjust_saturation(std::span<float> rgb, float factor);
/// The hue turned by amount · 360°.
void adjust_hue(std::span<float> rgb, float amount);

}  // namespace cohort::data
