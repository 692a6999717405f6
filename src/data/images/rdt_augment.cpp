#include "data/images/rdt_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "data/images/colour.h"

namespace cohort::data {
namespace {

// Places in a sample's stream, behind those of the image pipeline and the goal; a camera has its own.
constexpr std::uint64_t kAugmentDraws = std::uint64_t{1} << 44;
constexpr std::uint64_t kOfCamera = std::uint64_t{1} << 36;
constexpr std::uint64_t kNoiseDraws = std::uint64_t{1} << 8;  // behind the choices
constexpr double kNoiseScale = 0.05 * 255;

std::uint8_t as_pixel(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0));
}

/// Mirrored into [0, n): -1 -> 1, n -> n - 2.
std::int64_t mirrored(std::int64_t at, std::int64_t n) {
  if (n == 1) return 0;
  const std::int64_t period = 2 * (n - 1);
  at = ((at % period) + period) % period;
  return at < n ? at : period - at;
}

/// A weight of a pixel at an offset.
struct Tap {
  std::int64_t dy, dx;
  float weight;
};

/// Sums of taps.
void filter(Image& image, const std::vector<Tap>& taps) {
  const Image from = image;
  const std::int64_t h = image.height, w = image.width, c = image.channels;
  std::vector<float> sums(static_cast<std::size_t>(w * c));
  std::vector<std::int64_t> columns(static_cast<std::size_t>(w));
  for (std::int64_t y = 0; y < h; ++y) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (const Tap& tap : taps) {
      const std::uint8_t* row = from.row(mirrored(y + tap.dy, h));
      for (std::int64_t x = 0; x < w; ++x) {
        const std::int64_t at = x + tap.dx;
        const std::uint8_t* pixel = row + (at >= 0 && at < w ? at : mirrored(at, w)) * c;
        for (std::int64_t k = 0; k < c; ++k)
          sums[static_cast<std::size_t>(x * c + k)] += tap.weight * static_cast<float>(pixel[k]);
      }
    }
    std::uint8_t* out = image.row(y);
    for (std::size_t i = 0; i < sums.size(); ++i) out[i] = as_pixel(static_cast<double>(sums[i]));
  }
}

void filter_both_ways(Image& image, const std::vector<float>& weights, std::int64_t first) {
  // Two passes on floats would differ from one in the rounding between them; a window has at most 11 x 11 taps.
  std::vector<Tap> taps;
  const auto n = static_cast<std::int64_t>(weights.size());
  for (std::int64_t dy = 0; dy < n; ++dy)
    for (std::int64_t dx = 0; dx < n; ++dx)
      taps.push_back(
          {first + dy, first + dx, weights[static_cast<std::size_t>(dy)] * weights[static_cast<std::size_t>(dx)]});
  filter(image, taps);
}

/// Choices of one image.
class Choices {
 public:
  Choices(const RandomStream& random, std::uint64_t begin) : random_(random), next_(begin) {}
  double uniform(double low, double high) { return low + static_cast<double>(random_.uniform(next_++)) * (high - low); }
  /// In [low, high].
  int whole(int low, int high) {
    return low + static_cast<int>(random_.below(next_++, static_cast<std::uint32_t>(high - low + 1)));
  }

 private:
  const RandomStream& random_;
  std::uint64_t next_;
};

constexpr float kRed = 0.299f, kGreen = 0.587f, kBlue = 0.114f;

void clip(std::vector<float>& rgb) {
  for (float& value : rgb) value = std::clamp(value, 0.0f, 1.0f);
}

void jitter_colours(Image& image, Choices& choices) {
  const std::array<float, 4> factors{
      static_cast<float>(choices.uniform(0.7, 1.3)), static_cast<float>(choices.uniform(0.6, 1.4)),
      static_cast<float>(choices.uniform(0.5, 1.5)), static_cast<float>(choices.uniform(-0.03, 0.03))};
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(choices.whole(0, i))]);
  std::vector<float> rgb(image.pixels.size());
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<float>(image.pixels[i]) / 255.0f;
  const auto grey = [&](std::size_t i) { return kRed * rgb[i] + kGreen * rgb[i + 1] + kBlue * rgb[i + 2]; };
  for (const int step : order) {
    const float f = factors[static_cast<std::size_t>(step)];
    if (step == 0) {
      for (float& value : rgb) value *= f;
    } else if (step == 1) {
      double sum = 0;
      for (std::size_t i = 0; i + 2 < rgb.size(); i += 3) sum += static_cast<double>(grey(i));
      const float mean = static_cast<float>(sum * 3 / static_cast<double>(std::max<std::size_t>(1, rgb.size())));
      for (float& value : rgb) value = f * value + (1 - f) * mean;
    } else if (step == 2) {
      for (std::size_t i = 0; i + 2 < rgb.size(); i += 3) {
        const float own = grey(i);
        for (std::size_t k = 0; k < 3; ++k) rgb[i + k] = f * rgb[i + k] + (1 - f) * own;
      }
    } else {
      adjust_hue(rgb, f);
    }
    clip(rgb);
  }
  for (std::size_t i = 0; i < rgb.size(); ++i) image.pixels[i] = as_pixel(static_cast<double>(rgb[i]) * 255.0);
}

void blur(Image& image, Choices& choices) {
  const bool moves = choices.whole(0, 1) == 1;
  if (moves) {
    const int size = choices.whole(3, 36);
    const double angle = choices.uniform(0, 360);
    return motion_blur(image, size | 1, angle, choices.uniform(-1, 1));
  }
  switch (choices.whole(0, 2)) {
    case 0:
      return gaussian_blur(image, choices.uniform(0, 3));
    case 1:
      return average_blur(image, choices.whole(2, 7));
    default:
      return median_blur(image, choices.whole(3, 11) | 1);
  }
}

void corrupt(Image& image, Choices& choices, const RandomStream& random, std::uint64_t begin) {
  const bool blur_first = choices.whole(0, 1) == 1, blurs = choices.whole(0, 1) == 1;
  const auto kind = static_cast<ImageNoise>(choices.whole(0, 2));
  const double scale = choices.uniform(0, kNoiseScale);
  const bool per_channel = choices.whole(0, 1) == 1;
  if (blurs && blur_first) blur(image, choices);
  add_image_noise(image, kind, scale, per_channel, random, begin);
  if (blurs && !blur_first) blur(image, choices);
}

}  // namespace

void add_image_noise(Image& image, ImageNoise kind, double scale, bool per_channel, const RandomStream& random,
                     std::uint64_t begin) {
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto draw = [&](std::uint64_t index) {
    if (kind == ImageNoise::kGaussian) return scale * static_cast<double>(random.normal(begin + index));
    const double u = static_cast<double>(random.uniform(begin + 4 * index));
    if (kind == ImageNoise::kLaplace) {
      const double centred = u - 0.5;
      return -scale * std::copysign(std::log(std::max(1e-12, 1 - 2 * std::abs(centred))), centred);
    }
    // Poisson, by the inverse of its distribution.
    double p = std::exp(-scale), sum = p;
    int count = 0;
    while (u > sum && count < 255) sum += p *= scale / ++count;
    return random.uniform(begin + 4 * index + 1) < 0.5f ? -static_cast<double>(count) : static_cast<double>(count);
  };
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    double noise = 0;
    for (std::size_t k = 0; k < channels && i + k < image.pixels.size(); ++k) {
      if (k == 0 || per_channel) noise = std::nearbyint(draw(per_channel ? i + k : i / channels));
      image.pixels[i + k] = as_pixel(static_cast<double>(image.pixels[i + k]) + noise);
    }
  }
}

void gaussian_blur(Image& image, double sigma) {
  if (sigma < 1e-3) return;
  int size = static_cast<int>(std::max(5.0, (sigma < 3 ? 3.3 : sigma < 5 ? 2.9 : 2.6) * sigma));
  size |= 1;
  std::vector<float> weights;
  double sum = 0;
  for (int i = -(size / 2); i <= size / 2; ++i) sum += std::exp(-0.5 * i * i / (sigma * sigma));
  for (int i = -(size / 2); i <= size / 2; ++i)
    weights.push_back(static_cast<float>(std::exp(-0.5 * i * i / (sigma * sigma)) / sum));
  filter_both_ways(image, weights, -(size / 2));
}

void average_blur(Image& image, int size) {
  COHORT_CHECK(size >= 1, "a blur over {} pixels", size);
  filter_both_ways(image, std::vector<float>(static_cast<std::size_t>(size), 1.0f / static_cast<float>(size)),
                   -(size / 2));
}

void median_blur(Image& image, int size) {
  COHORT_CHECK(size >= 1 && size % 2 == 1, "a median over {} pixels", size);
  const Image from = image;
  const std::int64_t h = image.height, w = image.width, c = image.channels, half = size / 2;
  const int middle = size * size / 2;
  for (std::int64_t k = 0; k < c; ++k)
    for (std::int64_t y = 0; y < h; ++y) {
      // The window's histogram slides along the row (Huang et al. 1979).
      std::array<int, 256> counts{};
      const auto column = [&](std::int64_t x, int change) {
        const std::int64_t at = std::clamp<std::int64_t>(x, 0, w - 1);
        for (std::int64_t dy = -half; dy <= half; ++dy)
          counts[from.row(std::clamp<std::int64_t>(y + dy, 0, h - 1))[at * c + k]] += change;
      };
      for (std::int64_t x = -half; x < half; ++x) column(x, 1);
      for (std::int64_t x = 0; x < w; ++x) {
        column(x + half, 1);
        int below = 0, value = 0;
        while (below + counts[static_cast<std::size_t>(value)] <= middle)
          below += counts[static_cast<std::size_t>(value++)];
        image.row(y)[x * c + k] = static_cast<std::uint8_t>(value);
        column(x - half, -1);
      }
    }
}

void motion_blur(Image& image, int size, double angle, double direction) {
  COHORT_CHECK(size >= 1 && size % 2 == 1, "a blur along {} pixels", size);
  const double first = (std::clamp(direction, -1.0, 1.0) + 1) / 2, turn = angle * std::numbers::pi / 180;
  const double middle = (size - 1) / 2.0, cosine = std::cos(turn), sine = std::sin(turn);
  std::vector<Tap> taps;
  float sum = 0;
  // Each place of the square looks, turned back, at the line that stands upright in its middle.
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const double dx = x - middle, dy = y - middle;
      const double u = cosine * dx + sine * dy, v = middle - sine * dx + cosine * dy;
      const double across = 1 - std::abs(u);
      if (across <= 0 || v <= -1 || v >= size) continue;
      // Between two pixels of the line, the second of which may lie beyond its end.
      const double below = std::floor(v);
      double value = 0;
      for (const double at : {below, below + 1})
        if (at >= 0 && at <= size - 1) {
          const double share = size > 1 ? at / (size - 1) : 0;
          value += (1 - std::abs(v - at)) * (first + share * (1 - 2 * first));
        }
      const auto weight = static_cast<float>(across * value);
      if (weight <= 0) continue;
      taps.push_back({y - size / 2, x - size / 2, weight});
      sum += weight;
    }
  if (sum <= 0) return;
  for (Tap& tap : taps) tap.weight /= sum;
  filter(image, taps);
}

void rdt_augment(Image& image, const RandomStream& random, std::uint64_t camera) {
  const std::uint64_t begin = kAugmentDraws + camera * kOfCamera;
  Choices choices(random, begin);
  if (choices.uniform(0, 1) < 0.5) return;
  const int what = choices.whole(0, 2);  // a corruption, colours, both
  if (what != 0) jitter_colours(image, choices);
  if (what != 1) corrupt(image, choices, random, begin + kNoiseDraws);
}

}  // namespace cohort::data
