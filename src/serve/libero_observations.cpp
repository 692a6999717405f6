#include "serve/libero_observations.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cohort::serve {
namespace {

constexpr std::int64_t kSentPictures = 224;   // px: resize_size of the example
constexpr std::int64_t kState[] = {3, 4, 2};  // numbers of the hand's place, its orientation (x y z w), the fingers

/// Which source pixels make a pixel, and their weights in 2^22ths: precompute_coeffs and normalize_coeffs_8bpc of Pillow,
/// with its bilinear filter (a triangle of radius 1, as wide as the step between source pixels where that is larger).
struct Tap {
  std::int64_t first = 0;
  std::vector<std::int64_t> weights;
};
std::vector<Tap> taps_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), support = std::max(scale, 1.0);
  std::vector<Tap> taps;
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const auto last = std::min(from, static_cast<std::int64_t>(center + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t x = first; x < last; ++x) {
      const double at = std::abs((static_cast<double>(x) - center + 0.5) * (1 / support));
      weights.push_back(at < 1 ? 1 - at : 0);
      sum += weights.back();
    }
    Tap& tap = taps.emplace_back();
    tap.first = first;
    for (const double w : weights)
      tap.weights.push_back(static_cast<std::int64_t>(0.5 + (sum != 0 ? w / sum : w) * (1 << 22)));
  }
  return taps;
}

std::uint8_t sum_of(const Tap& tap, const std::uint8_t* pixel, std::ptrdiff_t step) {
  std::int64_t sum = 1 << 21;
  pixel += tap.first * step;
  for (const std::int64_t weight : tap.weights) sum += weight * *pixel, pixel += step;
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> 22, 0, 255));
}

/// rgb (height, width, 3) -> (to_height, to_width, 3): rows first, each pass rounded, a pass of the same size left out.
std::vector<std::uint8_t> resized(std::span<const std::uint8_t> rgb, std::int64_t height, std::int64_t width,
                                  std::int64_t to_height, std::int64_t to_width) {
  std::vector<std::uint8_t> wide(rgb.begin(), rgb.end());
  if (to_width != width) {
    const std::vector<Tap> taps = taps_of(width, to_width);
    wide.resize(static_cast<std::size_t>(height * to_width * 3));
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < to_width; ++x)
        for (std::int64_t c = 0; c < 3; ++c)
          wide[static_cast<std::size_t>((y * to_width + x) * 3 + c)] =
              sum_of(taps[static_cast<std::size_t>(x)], rgb.data() + y * width * 3 + c, 3);
  }
  if (to_height == height) return wide;
  const std::vector<Tap> taps = taps_of(height, to_height);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(to_height * to_width * 3));
  for (std::int64_t y = 0; y < to_height; ++y)
    for (std::int64_t x = 0; x < to_width * 3; ++x)
      out[static_cast<std::size_t>(y * to_width * 3 + x)] =
          sum_of(taps[static_cast<std::size_t>(y)], wide.data() + x, to_width * 3);
  return out;
}

}  // namespace

std::vector<policy::Observation> libero_observations() {
  constexpr std::int64_t kSide = kLiberoPictures;
  return {{.name = "robot0_eef_pos", .shape = {kState[0]}},
          {.name = "robot0_eef_quat", .shape = {kState[1]}},
          {.name = "robot0_gripper_qpos", .shape = {kState[2]}},
          {.name = "agentview_rgb", .shape = {kSide, kSide, 3}, .picture = true},
          {.name = "eye_in_hand_rgb", .shape = {kSide, kSide, 3}, .picture = true}};
}

Map libero_message(const policy::Frame& frame, std::size_t i) {
  Map message;
  std::size_t camera = 0;
  for (const char* name : {"observation/image", "observation/wrist_image"}) {
    const ArrayView& all = frame.images[camera++];
    const auto bytes = static_cast<std::size_t>(all.shape[1] * all.shape[2] * 3);
    const auto rgb = all.span<std::uint8_t>().subspan(i * bytes, bytes);
    // Half a turn, since robosuite gives the last row first: pixels from the last to the first.
    std::vector<std::uint8_t> turned(bytes);
    for (std::size_t p = 0; p < bytes; p += 3)
      std::copy_n(rgb.begin() + static_cast<std::ptrdiff_t>(p), 3, turned.end() - static_cast<std::ptrdiff_t>(p) - 3);
    const auto sent = resize_with_pad(turned, all.shape[1], all.shape[2], kSentPictures);
    message.push_back({name, {byte_array({kSentPictures, kSentPictures, 3}, sent)}});
  }
  constexpr auto kWidth = static_cast<std::size_t>(kState[0] + kState[1] + kState[2]);
  const auto row = frame.low_dim.subspan(i * kWidth, kWidth);
  const std::vector<double> numbers(row.begin(), row.end());
  std::vector<double> state(numbers.begin(), numbers.begin() + kState[0]);
  for (const double n : axis_angle(std::span(numbers).subspan(kState[0], kState[1]))) state.push_back(n);
  state.insert(state.end(), numbers.begin() + kState[0] + kState[1], numbers.end());
  message.push_back({"observation/state", {double_array({std::ssize(state)}, state)}});
  return message;
}

std::vector<std::uint8_t> resize_with_pad(std::span<const std::uint8_t> rgb, std::int64_t height, std::int64_t width,
                                          std::int64_t size) {
  COHORT_CHECK(height > 0 && width > 0 && std::ssize(rgb) == height * width * 3, "a picture of {} x {} has {} bytes",
               height, width, rgb.size());
  if (height == size && width == size) return {rgb.begin(), rgb.end()};
  const double ratio = std::max(static_cast<double>(width) / static_cast<double>(size),
                                static_cast<double>(height) / static_cast<double>(size));
  const auto to_height = static_cast<std::int64_t>(static_cast<double>(height) / ratio),
             to_width = static_cast<std::int64_t>(static_cast<double>(width) / ratio);
  const std::vector<std::uint8_t> small = resized(rgb, height, width, to_height, to_width);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(size * size * 3));
  const std::int64_t top = (size - to_height) / 2, left = (size - to_width) / 2;
  for (std::int64_t y = 0; y < to_height; ++y)
    std::copy_n(small.begin() + y * to_width * 3, to_width * 3, out.begin() + ((top + y) * size + left) * 3);
  return out;
}

std::vector<double> axis_angle(std::span<const double> xyzw) {
  const double w = std::clamp(xyzw[3], -1.0, 1.0), sine = std::sqrt(1 - w * w);
  // math.isclose(sine, 0.0) of Python holds for 0 alone: its tolerance is relative.
  if (sine == 0) return {0, 0, 0};
  std::vector<double> out;
  for (std::size_t i = 0; i < 3; ++i) out.push_back(xyzw[i] * 2 * std::acos(w) / sine);
  return out;
}

}  // namespace cohort::serve
