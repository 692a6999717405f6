#include "tasks/libero/picture_noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"

namespace cohort::tasks::libero {
namespace {

constexpr int kSize = kNoisyPicture, kChannels = 3, kSeverities = 10;
constexpr std::size_t kNumbers = std::size_t{kSize} * kSize * kChannels;

std::size_t index_of(int y, int x, int channel = 0) {
  return (static_cast<std::size_t>(y) * kSize + static_cast<std::size_t>(x)) * kChannels +
         static_cast<std::size_t>(channel);
}
int inside(int i) {
  return std::clamp(i, 0, kSize - 1);
}
/// A number that NumPy's astype(uint8) cuts off.
std::uint8_t cut(double value) {
  return static_cast<std::uint8_t>(value);
}

/// ImageMagick's MotionBlurImage: half a bell along a line, in 16 bits a channel, edges repeated.
void motion_blur(std::span<std::uint8_t> rgb, int severity, compose::NumpyRandom& random) {
  struct Blur {
    int radius;
    double sigma;
  };
  constexpr std::array<Blur, kSeverities> kBlurs{
      {{5, 2}, {8, 3}, {10, 4}, {12, 5}, {15, 6}, {18, 8}, {20, 10}, {25, 12}, {30, 15}, {35, 20}}};
  const Blur& blur = kBlurs.at(static_cast<std::size_t>(severity));
  const double angle = random.uniform(-45, 45) * std::numbers::pi / 180;
  const int width = 2 * blur.radius + 1;
  struct Tap {
    double weight;
    int x, y;
  };
  std::vector<Tap> taps;
  double sum = 0;
  for (int i = 0; i < width; ++i) {
    const double weight = std::exp(-(i * i) / (2 * blur.sigma * blur.sigma));
    sum += weight;
    taps.push_back({weight, static_cast<int>(std::ceil(i * std::cos(angle) - 0.5)),
                    static_cast<int>(std::ceil(i * std::sin(angle) - 0.5))});
  }
  constexpr double kSixteenBits = 257;  // of a level of eight
  const std::vector<std::uint8_t> from(rgb.begin(), rgb.end());
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x)
      for (int c = 0; c < kChannels; ++c) {
        double value = 0;
        for (const Tap& tap : taps)
          value += tap.weight / sum * kSixteenBits * from[index_of(inside(y + tap.y), inside(x + tap.x), c)];
        rgb[index_of(y, x, c)] = cut(std::floor(value + 0.5) / kSixteenBits + 0.5);
      }
}

/// scikit-image's gaussian() of a picture in [0, 1]: four standard deviations on either side, edges repeated.
void smooth(std::vector<double>& picture, double sigma) {
  const int radius = static_cast<int>(4 * sigma + 0.5);
  std::vector<double> weights;
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    weights.push_back(std::exp(-0.5 / (sigma * sigma) * i * i));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  std::vector<double> other(picture.size());
  const auto along = [&](const std::vector<double>& from, std::vector<double>& to, bool rows) {
    for (int y = 0; y < kSize; ++y)
      for (int x = 0; x < kSize; ++x)
        for (int c = 0; c < kChannels; ++c) {
          double value = 0;
          for (int i = -radius; i <= radius; ++i)
            value += weights[static_cast<std::size_t>(i + radius)] *
                     from[rows ? index_of(inside(y + i), x, c) : index_of(y, inside(x + i), c)];
          to[index_of(y, x, c)] = value;
        }
  };
  along(picture, other, true);
  along(other, picture, false);
}

std::vector<double> in_unit(std::span<const std::uint8_t> rgb) {
  std::vector<double> picture(kNumbers);
  for (std::size_t i = 0; i < kNumbers; ++i) picture[i] = rgb[i] / 255.0;
  return picture;
}

void gaussian_blur(std::span<std::uint8_t> rgb, int severity) {
  std::vector<double> picture = in_unit(rgb);
  smooth(picture, severity + 1);
  for (std::size_t i = 0; i < kNumbers; ++i) rgb[i] = cut(std::clamp(picture[i], 0.0, 1.0) * 255);
}

/// SciPy's zoom() of order 1 along one axis of `from` pixels: which pixel each of the result begins at, and how far it
/// is to the next; below 0 where it lies outside of the picture by rounding.
struct Zoomed {
  std::vector<int> first;
  std::vector<double> part;
};
Zoomed zoomed(int from, double factor) {
  const int to = static_cast<int>(std::nearbyint(from * factor));
  const double step = to > 1 ? static_cast<double>(from - 1) / (to - 1) : 1;
  Zoomed z;
  for (int i = 0; i < to; ++i) {
    const double at = i * step;
    const bool outside = at > from - 1;
    z.first.push_back(outside ? -1 : static_cast<int>(std::floor(at)));
    z.part.push_back(at - std::floor(at));
  }
  return z;
}

/// Adds the middle of `picture`, magnified, to `sum`.
void add_magnified(const std::vector<float>& picture, double factor, std::vector<float>& sum) {
  const int kept = static_cast<int>(std::ceil(kSize / factor)), top = (kSize - kept) / 2;
  const Zoomed z = zoomed(kept, factor);
  const int trimmed = (static_cast<int>(z.first.size()) - kSize) / 2;
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x) {
      const auto row = static_cast<std::size_t>(y + trimmed), column = static_cast<std::size_t>(x + trimmed);
      if (z.first[row] < 0 || z.first[column] < 0) continue;
      const double v = z.part[row], u = z.part[column];
      const int y0 = top + z.first[row], x0 = top + z.first[column];
      const int y1 = top + std::min(z.first[row] + 1, kept - 1), x1 = top + std::min(z.first[column] + 1, kept - 1);
      for (int c = 0; c < kChannels; ++c) {
        const auto at = [&](int py, int px) { return static_cast<double>(picture[index_of(py, px, c)]); };
        const double value =
            (1 - v) * (1 - u) * at(y0, x0) + (1 - v) * u * at(y0, x1) + v * (1 - u) * at(y1, x0) + v * u * at(y1, x1);
        sum[index_of(y, x, c)] += static_cast<float>(value);
      }
    }
}

void zoom_blur(std::span<std::uint8_t> rgb, int severity) {
  struct Factors {
    double end, step;
  };
  constexpr std::array<Factors, kSeverities> kFactors{{{1.11, 0.01},
                                                       {1.16, 0.01},
                                                       {1.21, 0.02},
                                                       {1.26, 0.02},
                                                       {1.31, 0.03},
                                                       {1.36, 0.01},
                                                       {1.41, 0.01},
                                                       {1.46, 0.02},
                                                       {1.51, 0.02},
                                                       {1.56, 0.03}}};
  const auto [end, step] = kFactors.at(static_cast<std::size_t>(severity));
  // numpy.arange(1, end, step): so many, and so far apart.
  const int count = static_cast<int>(std::ceil((end - 1) / step));
  const double apart = (1 + step) - 1;
  std::vector<float> picture(kNumbers), sum(kNumbers, 0.0f);
  for (std::size_t i = 0; i < kNumbers; ++i) picture[i] = static_cast<float>(rgb[i] / 255.0);
  for (int i = 0; i < count; ++i) add_magnified(picture, 1 + i * apart, sum);
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const float mean = (picture[i] + sum[i]) / static_cast<float>(count + 1);
    rgb[i] = static_cast<std::uint8_t>(std::clamp(mean, 0.0f, 1.0f) * 255.0f);
  }
}

/// A cloud by the diamond-square algorithm (Fournier, Fussell and Carpenter, 1982), in [0, 1].
std::vector<double> cloud(double decay, compose::NumpyRandom& random) {
  std::vector<double> map(std::size_t{kSize} * kSize, 0.0);
  const auto at = [&](int y, int x) -> double& {
    return map[static_cast<std::size_t>((y + kSize) % kSize) * kSize + static_cast<std::size_t>((x + kSize) % kSize)];
  };
  double wibble = 100;
  const auto mean = [&](double sum) { return sum / 4 + wibble * random.uniform(-wibble, wibble); };
  for (int step = kSize; step >= 2; step /= 2, wibble /= decay) {
    const int half = step / 2;
    for (int y = 0; y < kSize; y += step)
      for (int x = 0; x < kSize; x += step)
        at(y + half, x + half) = mean((at(y, x) + at(y + step, x)) + (at(y, x + step) + at(y + step, x + step)));
    for (int y = 0; y < kSize; y += step)
      for (int x = 0; x < kSize; x += step)
        at(y, x + half) = mean((at(y + half, x + half) + at(y - half, x + half)) + (at(y, x) + at(y, x + step)));
    for (int y = 0; y < kSize; y += step)
      for (int x = 0; x < kSize; x += step)
        at(y + half, x) = mean((at(y + half, x + half) + at(y + half, x - half)) + (at(y, x) + at(y + step, x)));
  }
  const double low = *std::min_element(map.begin(), map.end());
  for (double& height : map) height -= low;
  const double high = *std::max_element(map.begin(), map.end());
  for (double& height : map) height /= high;
  return map;
}

void fog(std::span<std::uint8_t> rgb, int severity, compose::NumpyRandom& random) {
  struct Fog {
    double density, decay;
  };
  constexpr std::array<Fog, kSeverities> kFogs{{{0.5, 3},
                                                {1.0, 2.8},
                                                {1.5, 2.5},
                                                {2.0, 2.2},
                                                {2.5, 2.0},
                                                {3.0, 1.8},
                                                {3.5, 1.6},
                                                {4.0, 1.5},
                                                {4.5, 1.4},
                                                {5.0, 1.3}}};
  const auto [density, decay] = kFogs.at(static_cast<std::size_t>(severity));
  const std::vector<double> heights = cloud(decay, random);
  const double brightest = *std::max_element(rgb.begin(), rgb.end()) / 255.0;
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const double value = rgb[i] / 255.0 + density * heights[i / kChannels];
    rgb[i] = cut(std::clamp(value * brightest / (brightest + density), 0.0, 1.0) * 255);
  }
}

void glass_blur(std::span<std::uint8_t> rgb, int severity, compose::NumpyRandom& random) {
  struct Glass {
    double sigma;
    int distance, times;
  };
  constexpr std::array<Glass, kSeverities> kGlasses{{{0.5, 1, 3},
                                                     {0.7, 1, 3},
                                                     {0.9, 2, 3},
                                                     {1.0, 2, 2},
                                                     {1.1, 3, 2},
                                                     {1.3, 3, 2},
                                                     {1.5, 4, 2},
                                                     {1.8, 4, 2},
                                                     {2.2, 5, 1},
                                                     {2.5, 5, 1}}};
  constexpr int kReach = 224;  // pixels: theirs is made for pictures of ImageNet, and leaves the rest in its place
  const auto [sigma, distance, times] = kGlasses.at(static_cast<std::size_t>(severity));
  std::vector<double> picture = in_unit(rgb);
  smooth(picture, sigma);
  for (std::size_t i = 0; i < kNumbers; ++i) rgb[i] = cut(picture[i] * 255);
  const auto draw = [&] { return static_cast<int>(random.below(static_cast<std::uint32_t>(2 * distance))) - distance; };
  for (int time = 0; time < times; ++time)
    for (int y = kReach - distance; y > distance; --y)
      for (int x = kReach - distance; x > distance; --x) {
        const int dx = draw(), dy = draw();
        for (int c = 0; c < kChannels; ++c) rgb[index_of(y, x, c)] = rgb[index_of(y + dy, x + dx, c)];
      }
  picture = in_unit(rgb);
  smooth(picture, sigma);
  for (std::size_t i = 0; i < kNumbers; ++i) rgb[i] = cut(std::clamp(picture[i], 0.0, 1.0) * 255);
}

}  // namespace

void add_picture_noise(std::span<std::uint8_t> rgb, int noise, compose::NumpyRandom& random) {
  COHORT_CHECK(rgb.size() == kNumbers, "a picture of {} numbers, not {}", rgb.size(), kNumbers);
  COHORT_CHECK(noise >= 1 && noise <= kPictureNoises, "noise {} of {}", noise, kPictureNoises);
  const int severity = (noise - 1) % kSeverities;
  switch ((noise - 1) / kSeverities) {
    case 0:
      return motion_blur(rgb, severity, random);
    case 1:
      return gaussian_blur(rgb, severity);
    case 2:
      return zoom_blur(rgb, severity);
    case 3:
      return fog(rgb, severity, random);
    default:
      return glass_blur(rgb, severity, random);
  }
}

}  // namespace cohort::tasks::libero
