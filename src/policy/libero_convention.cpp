#include "policy/libero_convention.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace cohort::policy {
namespace {

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

const std::vector<LiberoConvention>& known() {
  static const std::vector<LiberoConvention> kAll{
      {.name = "openpi-libero",
       .source = "openpi, examples/libero/main.py",
       .picture = "observation/image",
       .wrist_picture = "observation/wrist_image",
       .state = "observation/state",
       .size = 224,
       .doubles = true},
      {.name = "lerobot-libero",
       .source = "lerobot, envs/libero.py, envs/configs.py and LiberoProcessorStep",
       .picture = "observation.images.image",
       .wrist_picture = "observation.images.image2",
       .state = "observation.state",
       .drawn = 360},
      {.name = "vla-eval-libero",
       .source = "vla-eval 0.8.0, benchmarks/libero/benchmark.py",
       .picture = "agentview",
       .wrist_picture = "wrist",
       .state = "states",
       .quaternion = "positive",
       .doubles = true}};
  return kAll;
}

/// A setting: its values, and what it does.
struct Setting {
  const char *key, *values, *about;
};
constexpr std::array<Setting, 8> kSettings{{
    {"drawn", "px", "side of the pictures as they are drawn"},
    {"size", "px", "side that they are resized to, with padding and Pillow's bilinear filter; 0: as drawn"},
    {"turn", "half|rows|none",
     "of robosuite's pictures, whose last row comes first: by half a turn, rows turned round (upright), as they are"},
    {"crop", "0 to 1", "share of the area that is kept, of the middle, and resized back; 0.9 is OpenVLA's center_crop"},
    {"rotation", "axis-angle|quaternion", "the hand's orientation in the state; a quaternion is x y z w"},
    {"quaternion", "as-is|positive", "its sign as robosuite gives it, or so that w is not negative"},
    {"fingers", "both|first", "the fingers' joints in the state"},
    {"gripper", "robosuite|rlds|inverted",
     "what the policy's last number means: 1 closed and -1 open, 0 closed and 1 open, 1 open and -1 closed"},
}};

std::string value_of(const LiberoConvention& c, const std::string& key) {
  if (key == "drawn") return format("{}", c.drawn);
  if (key == "size") return format("{}", c.size);
  if (key == "turn") return c.turn;
  if (key == "crop") return format("{:g}", c.crop);
  if (key == "rotation") return c.rotation;
  if (key == "quaternion") return c.quaternion;
  if (key == "fingers") return c.fingers;
  return c.gripper;
}

template <class Number>
Number number_of(const std::string& key, const std::string& value, Number least, Number most) {
  Number n{};
  const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), n);
  COHORT_THROW_UNLESS(wrong == std::errc{} && end == value.data() + value.size() && n >= least && n <= most,
                      "{}={}: it is a number between {} and {}", key, value, least, most);
  return n;
}

void set(LiberoConvention& c, const std::string& key, const std::string& value) {
  const auto* setting =
      std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& one) { return key == one.key; });
  if (setting == kSettings.end()) {
    std::vector<std::string> keys;
    for (const Setting& one : kSettings) keys.emplace_back(one.key);
    throw Error(format("{} has no setting '{}': {}", c.name, key, join(keys, ", ")));
  }
  if (key == "drawn") return void(c.drawn = number_of<std::int64_t>(key, value, 16, 4096));
  if (key == "size") return void(c.size = number_of<std::int64_t>(key, value, 0, 4096));
  if (key == "crop") return void(c.crop = number_of<double>(key, value, 0.01, 1));
  const std::string values = setting->values;
  COHORT_THROW_UNLESS(!value.empty() && ("|" + values + "|").find("|" + value + "|") != std::string::npos,
                      "{}={}: it is {}", key, value, values);
  (key == "turn"         ? c.turn
   : key == "rotation"   ? c.rotation
   : key == "quaternion" ? c.quaternion
   : key == "fingers"    ? c.fingers
                         : c.gripper) = value;
}

/// rgb (height, width, 3) with rows, or rows and columns, the other way round.
std::vector<std::uint8_t> turned(std::span<const std::uint8_t> rgb, std::int64_t height, std::int64_t width, bool rows,
                                 bool columns) {
  std::vector<std::uint8_t> out(rgb.size());
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      std::copy_n(rgb.data() + ((rows ? height - 1 - y : y) * width + (columns ? width - 1 - x : x)) * 3, 3,
                  out.data() + (y * width + x) * 3);
  return out;
}

}  // namespace

std::int64_t LiberoConvention::state_width() const {
  return 3 + (rotation == "quaternion" ? 4 : 3) + (fingers == "both" ? 2 : 1);
}

std::string LiberoConvention::text() const {
  std::string all = name;
  const LiberoConvention& defaults =
      *std::find_if(known().begin(), known().end(), [&](const auto& one) { return one.name == name; });
  char before = ':';
  for (const Setting& one : kSettings)
    if (const std::string value = value_of(*this, one.key); value != value_of(defaults, one.key)) {
      all += format("{}{}={}", before, one.key, value);
      before = ',';
    }
  return all;
}

LiberoConvention libero_convention(const std::string& text, const std::map<std::string, bool>& wishes) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::vector<std::string> names;
  for (const LiberoConvention& one : known()) names.push_back(one.name);
  const auto found = std::find(names.begin(), names.end(), name);
  COHORT_THROW_UNLESS(found != names.end(), "--observations {}: task, {} are known", text, join(names, ", "));
  LiberoConvention convention = known()[static_cast<std::size_t>(found - names.begin())];
  if (name == "vla-eval-libero" && !wishes.empty()) {
    const auto wished = [&](const char* key) {
      const auto wish = wishes.find(key);
      return wish != wishes.end() && wish->second;
    };
    convention.with_wrist = wished("send_wrist_image");
    convention.with_state = wished("send_state");
    if (wished("quat_no_antipodal")) convention.quaternion = "as-is";
    COHORT_THROW_UNLESS(!wished("absolute_action"),
                        "the server asks for absolute_action: its actions are poses, and those of LIBERO's tasks here "
                        "are steps");
  }
  for (std::size_t at = colon; at != std::string::npos;) {
    const std::size_t next = text.find(',', at + 1);
    const std::string word = text.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    const std::size_t equal = word.find('=');
    COHORT_THROW_UNLESS(equal != std::string::npos, "--observations {}: '{}' is no setting KEY=VALUE", text, word);
    try {
      set(convention, word.substr(0, equal), word.substr(equal + 1));
    } catch (const Error& e) {
      throw Error(format("--observations {}: {}", text, e.what()));
    }
    at = next;
  }
  return convention;
}

std::string libero_conventions_help() {
  std::string text = "What LIBERO's tasks show by the names of others (NAME or NAME:KEY=VALUE,KEY=VALUE):\n";
  for (const LiberoConvention& one : known()) {
    text += format("  {}: {}, {}, {} ({})\n    ", one.name, one.picture, one.wrist_picture, one.state, one.source);
    for (const Setting& setting : kSettings) text += format(" {}={}", setting.key, value_of(one, setting.key));
    text += "\n";
  }
  for (const Setting& setting : kSettings)
    text += format("  {} ({}): {}\n", setting.key, setting.values, setting.about);
  return text;
}

std::vector<std::uint8_t> convention_picture(const LiberoConvention& c, std::span<const std::uint8_t> raw,
                                             std::int64_t height, std::int64_t width) {
  std::vector<std::uint8_t> picture = turned(raw, height, width, c.turn != "none", c.turn == "half");
  if (c.size > 0) {
    picture = resize_with_pad(picture, height, width, c.size);
    height = width = c.size;
  }
  if (c.crop >= 1) return picture;
  const double side = std::sqrt(c.crop);
  const auto rows = static_cast<std::int64_t>(static_cast<double>(height) * side),
             columns = static_cast<std::int64_t>(static_cast<double>(width) * side);
  const std::int64_t top = (height - rows) / 2, left = (width - columns) / 2;
  std::vector<std::uint8_t> middle;
  for (std::int64_t y = 0; y < rows; ++y) {
    const auto row = picture.begin() + ((top + y) * width + left) * 3;
    middle.insert(middle.end(), row, row + columns * 3);
  }
  return resized(middle, rows, columns, height, width);
}

std::vector<std::uint8_t> raw_picture(const LiberoConvention& c, std::span<const std::uint8_t> sent,
                                      std::int64_t height, std::int64_t width) {
  return turned(sent, height, width, c.turn != "none", c.turn == "half");
}

std::vector<float> convention_state(const LiberoConvention& c, std::span<const float> pos, std::span<const float> xyzw,
                                    std::span<const float> fingers) {
  std::vector<float> state(pos.begin(), pos.end());
  std::vector<double> quaternion(xyzw.begin(), xyzw.end());
  if (c.quaternion == "positive" && quaternion[3] < 0)
    for (double& q : quaternion) q = -q;
  if (c.rotation == "axis-angle") quaternion = axis_angle(quaternion);
  for (const double q : quaternion) state.push_back(static_cast<float>(q));
  state.insert(state.end(), fingers.begin(), c.fingers == "both" ? fingers.end() : fingers.begin() + 1);
  return state;
}

float robosuite_gripper(const LiberoConvention& c, float action) {
  if (c.gripper == "inverted") return -action;
  if (c.gripper != "rlds") return action;
  return action > 0.5f ? -1.0f : action < 0.5f ? 1.0f : 0.0f;
}

float convention_gripper(const LiberoConvention& c, float action) {
  if (c.gripper == "inverted") return -action;
  if (c.gripper != "rlds") return action;
  return action > 0 ? 0.0f : action < 0 ? 1.0f : 0.5f;
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

std::array<double, 4> quaternion_of(std::span<const double> axis_angle) {
  const double angle = std::hypot(axis_angle[0], axis_angle[1], axis_angle[2]);
  if (angle == 0) return {0, 0, 0, 1};
  const double scale = std::sin(angle / 2) / angle;
  return {axis_angle[0] * scale, axis_angle[1] * scale, axis_angle[2] * scale, std::cos(angle / 2)};
}

}  // namespace cohort::policy
