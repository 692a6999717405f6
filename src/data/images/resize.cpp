#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/error.h"

namespace cohort::data {
namespace {

double radius(ResizeMethod method) {
  return method == ResizeMethod::kLanczos3 ? 3 : 1;
}

double kernel(ResizeMethod method, double x) {
  x = std::abs(x);
  if (method != ResizeMethod::kLanczos3) return std::max(0.0, 1 - x);
  if (x > 3) return 0;
  if (x <= 1e-3) return 1;
  constexpr double pi = std::numbers::pi;
  return 3 * std::sin(pi * x) * std::sin(pi * x / 3) / (pi * pi * x * x);
}

/// Rounded to the nearest, halves to the even one: so are sums with a float whose last place is worth 1.
std::uint8_t to_byte(float value) {
  constexpr float kShift = 12582912;  // 1.5 · 2^23
  return static_cast<std::uint8_t>((std::clamp(value, 0.0f, 255.0f) + kShift) - kShift);
}

}  // namespace

ResizeMethod parse_resize_method(const std::string& name) {
  if (name == "lanczos3") return ResizeMethod::kLanczos3;
  if (name == "bilinear_antialias") return ResizeMethod::kBilinearAntialias;
  if (name == "bilinear") return ResizeMethod::kBilinear;
  if (name == "nearest") return ResizeMethod::kNearest;
  throw Error(format("unknown resize method '{}'; known are lanczos3, bilinear_antialias, bilinear, nearest", name));
}

const Resizer::Spans& Resizer::spans_for(std::int64_t from, std::int64_t to, ResizeMethod method) {
  for (auto spans = known_.begin(); spans != known_.end(); ++spans)
    if (spans->from == from && spans->to == to && spans->method == method) {
      known_.splice(known_.end(), known_, spans);
      return known_.back();
    }
  constexpr std::size_t kMost = 16;
  if (known_.size() == kMost) known_.pop_front();
  Spans& spans = known_.emplace_back(Spans{.from = from, .to = to, .method = method});
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double widening = method == ResizeMethod::kBilinear ? 1 : std::max(step, 1.0);
  spans.stride = static_cast<std::int64_t>(2 * std::ceil(radius(method) * widening)) + 2;
  spans.weights.assign(static_cast<std::size_t>(to * spans.stride), 0);
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    if (method == ResizeMethod::kNearest) {
      spans.first.push_back(std::min(static_cast<std::int64_t>(centre), from - 1));
      spans.taps.push_back(1);
      spans.weights[static_cast<std::size_t>(i * spans.stride)] = 1;
      continue;
    }
    const double reach = radius(method) * widening;
    const auto low = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(centre - reach - 0.5)));
    const auto high = std::min(from - 1, static_cast<std::int64_t>(std::floor(centre + reach - 0.5)));
    double total = 0;
    for (std::int64_t k = low; k <= high; ++k)
      total += kernel(method, (static_cast<double>(k) + 0.5 - centre) / widening);
    for (std::int64_t k = low; k <= high; ++k)
      spans.weights[static_cast<std::size_t>(i * spans.stride + k - low)] =
          static_cast<float>(kernel(method, (static_cast<double>(k) + 0.5 - centre) / widening) / total);
    spans.first.push_back(low);
    spans.taps.push_back(high - low + 1);
  }
  return spans;
}

void Resizer::resize(const Image& from, std::int64_t height, std::int64_t width, ResizeMethod method,
                     std::uint8_t* to) {
  COHORT_CHECK(from.height > 0 && from.width > 0 && height > 0 && width > 0, "{} x {} pixels are resized to {} x {}",
               from.height, from.width, height, width);
  const std::int64_t channels = from.channels;
  if (from.height == height && from.width == width) {
    std::copy(from.pixels.begin(), from.pixels.end(), to);
    return;
  }
  const Spans& columns = spans_for(from.width, width, method);
  const Spans& rows = spans_for(from.height, height, method);
  if (channels == 3) return resize_rgb(from, rows, columns, to);
  const auto line_size = static_cast<std::size_t>(from.width * channels);
  line_.resize(line_size);
  for (std::int64_t y = 0; y < height; ++y) {
    std::fill(line_.begin(), line_.end(), 0.0f);
    for (std::int64_t k = 0; k < rows.taps[static_cast<std::size_t>(y)]; ++k) {
      const float weight = rows.weights[static_cast<std::size_t>(y * rows.stride + k)];
      const std::uint8_t* source = from.row(rows.first[static_cast<std::size_t>(y)] + k);
      float* line = line_.data();
      for (std::size_t i = 0; i < line_size; ++i) line[i] += weight * static_cast<float>(source[i]);
    }
    for (std::int64_t x = 0; x < width; ++x) {
      const float* weights = columns.weights.data() + x * columns.stride;
      const float* source = line_.data() + columns.first[static_cast<std::size_t>(x)] * channels;
      const std::int64_t taps = columns.taps[static_cast<std::size_t>(x)];
      for (std::int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::int64_t k = 0; k < taps; ++k) sum += weights[k] * source[k * channels + c];
        *to++ = to_byte(sum);
      }
    }
  }
}

namespace {

/// Four floats; the compiler takes the machine's vectors for them.
using Four = float __attribute__((vector_size(16)));

using FourBytes = std::uint8_t __attribute__((vector_size(4)));

Four load_four(const float* at) {
  Four four;
  std::memcpy(&four, at, sizeof four);
  return four;
}

}  // namespace

void Resizer::resize_rgb(const Image& from, const Spans& rows, const Spans& columns, std::uint8_t* to) {
  constexpr std::size_t kBlock = 16;  // floats that stay in registers over the taps of a column
  const auto line = static_cast<std::size_t>(from.width * 3), padded = (line + kBlock - 1) / kBlock * kBlock;
  const auto source_rows = static_cast<std::size_t>(from.height);
  floats_.assign(padded * source_rows, 0.0f);
  for (std::size_t y = 0; y < source_rows; ++y) {
    const std::uint8_t* source = from.row(static_cast<std::int64_t>(y));
    float* out = floats_.data() + y * padded;
    std::size_t i = 0;
    for (; i + 4 <= line; i += 4) {
      FourBytes bytes;
      std::memcpy(&bytes, source + i, sizeof bytes);
      const Four four = __builtin_convertvector(bytes, Four);
      std::memcpy(out + i, &four, sizeof four);
    }
    for (; i < line; ++i) out[i] = static_cast<float>(source[i]);
  }
  // A line of the height wanted, then its pixels four floats apart, so that one load takes a pixel.
  line_.assign(padded + 4 * static_cast<std::size_t>(from.width), 0.0f);
  float* const pixels = line_.data() + padded;
  for (std::int64_t y = 0; y < rows.to; ++y) {
    const float* weights = rows.weights.data() + y * rows.stride;
    const auto taps = static_cast<std::size_t>(rows.taps[static_cast<std::size_t>(y)]);
    const float* first = floats_.data() + static_cast<std::size_t>(rows.first[static_cast<std::size_t>(y)]) * padded;
    for (std::size_t i = 0; i < padded; i += kBlock) {
      Four a{}, b{}, c{}, d{};
      const float* source = first + i;
      for (std::size_t k = 0; k < taps; ++k, source += padded) {
        const Four weight = Four{} + weights[k];
        a += weight * load_four(source);
        b += weight * load_four(source + 4);
        c += weight * load_four(source + 8);
        d += weight * load_four(source + 12);
      }
      const Four block[4] = {a, b, c, d};
      std::memcpy(line_.data() + i, block, sizeof block);
    }
    for (std::size_t x = 0; x < static_cast<std::size_t>(from.width); ++x)
      std::memcpy(pixels + 4 * x, line_.data() + 3 * x, 3 * sizeof(float));
    for (std::int64_t x = 0; x < columns.to; ++x) {
      const float* weight = columns.weights.data() + x * columns.stride;
      const float* source = pixels + 4 * columns.first[static_cast<std::size_t>(x)];
      Four sum{};
      for (std::int64_t k = 0; k < columns.taps[static_cast<std::size_t>(x)]; ++k)
        sum += weight[k] * load_four(source + 4 * k);
      for (int c = 0; c < 3; ++c) *to++ = to_byte(sum[c]);
    }
  }
}

void crop_and_resize(const Image& from, const double (&box)[4], std::int64_t height, std::int64_t width, float* to) {
  const auto place = [](double low, double high, std::int64_t size, std::int64_t i, std::int64_t count) {
    const double extent = static_cast<double>(size - 1);
    if (count == 1) return 0.5 * (low + high) * extent;
    return low * extent + static_cast<double>(i) * (high - low) * extent / static_cast<double>(count - 1);
  };
  for (std::int64_t y = 0; y < height; ++y) {
    const double fy = place(box[0], box[2], from.height, y, height);
    for (std::int64_t x = 0; x < width; ++x) {
      const double fx = place(box[1], box[3], from.width, x, width);
      const bool outside =
          fy < 0 || fx < 0 || fy > static_cast<double>(from.height - 1) || fx > static_cast<double>(from.width - 1);
      const auto top = static_cast<std::int64_t>(std::floor(fy)), left = static_cast<std::int64_t>(std::floor(fx));
      const std::int64_t bottom = std::min(top + 1, from.height - 1), right = std::min(left + 1, from.width - 1);
      const double down = fy - static_cast<double>(top), along = fx - static_cast<double>(left);
      for (std::int64_t c = 0; c < from.channels; ++c) {
        double value = 0;
        if (!outside) {
          const auto at = [&](std::int64_t row, std::int64_t column) {
            return static_cast<double>(from.row(row)[column * from.channels + c]);
          };
          const double upper = at(top, left) + (at(top, right) - at(top, left)) * along;
          const double lower = at(bottom, left) + (at(bottom, right) - at(bottom, left)) * along;
          value = upper + (lower - upper) * down;
        }
        *to++ = static_cast<float>(value);
      }
    }
  }
}

}  // namespace cohort::data
