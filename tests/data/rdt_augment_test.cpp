// RDT's image augmentation: each part against its formula.
#include "data/images/rdt_augment.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace cohort::data {
namespace {

Image noisy(std::int64_t height, std::int64_t width) {
  Image image;
  image.resize(height, width, 3);
  const RandomStream random(3, RandomPurpose::kTest, 0, 0);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(random.below(i, 256));
  return image;
}

Image flat(int value, std::int64_t height = 64, std::int64_t width = 64) {
  Image image;
  image.resize(height, width, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), static_cast<std::uint8_t>(value));
  return image;
}

/// Mirrored without the border's pixel twice.
std::int64_t inside(std::int64_t at, std::int64_t n) {
  while (at < 0 || at >= n) at = at < 0 ? -at : 2 * (n - 1) - at;
  return at;
}

TEST(RdtAugment, BlursAreTheirSums) {
  const Image from = noisy(9, 13);
  Image average = from, gaussian = from;
  average_blur(average, 4);
  gaussian_blur(gaussian, 1.2);
  for (std::int64_t y = 0; y < 9; ++y)
    for (std::int64_t x = 0; x < 13; ++x)
      for (std::int64_t c = 0; c < 3; ++c) {
        double mean = 0, weighted = 0, weights = 0;
        for (std::int64_t dy = -2; dy <= 2; ++dy)
          for (std::int64_t dx = -2; dx <= 2; ++dx) {
            const double pixel = from.row(inside(y + dy, 9))[inside(x + dx, 13) * 3 + c];
            if (dy < 2 && dx < 2) mean += pixel / 16;
            const double weight = std::exp(-static_cast<double>(dy * dy + dx * dx) / (2 * 1.2 * 1.2));
            weighted += weight * pixel;
            weights += weight;
          }
        ASSERT_NEAR(average.row(y)[x * 3 + c], mean, 0.51);
        ASSERT_NEAR(gaussian.row(y)[x * 3 + c], weighted / weights, 0.51);
      }
}

TEST(RdtAugment, TheMedianIsTheMiddleOfItsWindow) {
  const Image from = noisy(7, 8);
  Image image = from;
  median_blur(image, 5);
  for (std::int64_t y = 0; y < 7; ++y)
    for (std::int64_t x = 0; x < 8; ++x) {
      std::vector<int> window;
      for (std::int64_t dy = -2; dy <= 2; ++dy)
        for (std::int64_t dx = -2; dx <= 2; ++dx)
          window.push_back(
              from.row(std::clamp<std::int64_t>(y + dy, 0, 6))[std::clamp<std::int64_t>(x + dx, 0, 7) * 3 + 1]);
      std::nth_element(window.begin(), window.begin() + 12, window.end());
      ASSERT_EQ(image.row(y)[x * 3 + 1], window[12]);
    }
}

TEST(RdtAugment, MotionBlursAlongItsLine) {
  Image point = flat(0, 21, 21);
  point.row(10)[10 * 3] = 255;
  Image upright = point, across = point;
  motion_blur(upright, 5, 0, 0);
  motion_blur(across, 5, 90, 0);
  for (std::int64_t y = 0; y < 21; ++y)
    for (std::int64_t x = 0; x < 21; ++x) {
      EXPECT_EQ(upright.row(y)[x * 3], x == 10 && std::abs(y - 10) <= 2 ? 51 : 0) << y << " " << x;
      EXPECT_EQ(across.row(y)[x * 3], y == 10 && std::abs(x - 10) <= 2 ? 51 : 0) << y << " " << x;
    }
  for (const double angle : {0.0, 33.0, 200.0}) {
    Image grey = flat(120);
    motion_blur(grey, 31, angle, -0.7);
    EXPECT_EQ(grey.pixels, flat(120).pixels) << "weights sum to 1";
  }
}

TEST(RdtAugment, NoiseHasItsDistribution) {
  const RandomStream random(5, RandomPurpose::kAugmentation, 7, 1);
  // Variances: s², 2 s², s + s² (a Poisson's second moment, with a random sign); and a twelfth for the rounding.
  const double s = 6;
  const std::pair<ImageNoise, double> kinds[] = {
      {ImageNoise::kGaussian, s * s}, {ImageNoise::kLaplace, 2 * s * s}, {ImageNoise::kPoisson, s + s * s}};
  for (const auto& [kind, variance] : kinds) {
    Image image = flat(128);
    add_image_noise(image, kind, s, /*per_channel=*/true, random, 0);
    double sum = 0, squares = 0;
    for (const std::uint8_t pixel : image.pixels) {
      sum += pixel - 128.0;
      squares += (pixel - 128.0) * (pixel - 128.0);
    }
    const auto n = static_cast<double>(image.pixels.size());
    EXPECT_NEAR(sum / n, 0, 0.4);
    EXPECT_NEAR(squares / n, variance, 0.08 * variance + 0.1);
    Image grey = flat(128);
    add_image_noise(grey, kind, s, /*per_channel=*/false, random, 0);
    for (std::size_t i = 0; i < grey.pixels.size(); i += 3) ASSERT_EQ(grey.pixels[i], grey.pixels[i + 2]);
  }
}

TEST(RdtAugment, HalfOfTheImagesChangeAndTheSameDrawsGiveTheSameImage) {
  const Image from = noisy(16, 16);
  int changed = 0;
  for (std::uint64_t sample = 0; sample < 400; ++sample) {
    const RandomStream random(1, RandomPurpose::kAugmentation, sample, 0);
    Image one = from, again = from, other = from;
    rdt_augment(one, random, 0);
    rdt_augment(again, random, 0);
    rdt_augment(other, random, 1);
    ASSERT_EQ(one.pixels, again.pixels);
    changed += one.pixels != from.pixels;
  }
  EXPECT_NEAR(changed, 200, 40);
}

}  // namespace
}  // namespace cohort::data
