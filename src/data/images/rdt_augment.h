/// The image augmentation of RDT's reference (train/dataset.py and train/image_corrupt.py of
/// thu-ml/RoboticsDiffusionTransformer): half of the images get other colours, a corruption, or both.
///
/// Colours: brightness, contrast, saturation, hue by at most 0.3, 0.4, 0.5, 0.03, in a random order, with torchvision's
/// formulas (torchvision.transforms.ColorJitter). Corruption, in a random order, with imgaug 0.4's formulas: noise
/// (Gaussian, Laplace or Poisson, up to 0.05 · 255; of every other image the same in all channels), and for every other
/// image a blur: of motion (3 to 37 pixels), or one of Gaussian (sigma up to 3), average (2 to 7 pixels), median (3 to 11).
///
///   rdt_augment(image, RandomStream(seed, RandomPurpose::kAugmentation, sample, epoch), camera);
///
/// What is drawn is a function of the stream and the camera. Images have 3 channels.
#pragma once
#include <cstdint>

#include "core/philox.h"
#include "data/images/codec.h"

namespace cohort::data {

void rdt_augment(Image& image, const RandomStream& random, std::uint64_t camera);

/// Its parts.
enum class ImageNoise { kGaussian, kLaplace, kPoisson };
/// Adds rounded noise of scale `scale` (Poisson: its mean, with a random sign) to every pixel, or, per_channel, to every
/// number. Draws the indices from `begin` on, four for each number at most.
void add_image_noise(Image& image, ImageNoise kind, double scale, bool per_channel, const RandomStream& random,
                     std::uint64_t begin);
/// Beyond the border, images are mirrored without repeating the outermost pixel (but for the median, which repeats it).
void gaussian_blur(Image& image, double sigma);
void average_blur(Image& image, int size);
/// `size`: odd.
void median_blur(Image& image, int size);
/// Along a line of `size` (odd) pixels turned by `angle` degrees; `direction` in [-1, 1] weighs its ends.
void motion_blur(Image& image, int size, double angle, double direction);

}  // namespace cohort::data
