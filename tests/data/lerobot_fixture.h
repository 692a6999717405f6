/// What the LeRobot fixtures hold (fixtures/make_lerobot_fixture.py): values and pictures by the number of a step in the
/// whole set.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/files.h"
#include "data/episodes.h"
#include "data/fixture_folder.h"
#include "data/images/codec.h"
#include "data/lerobot/parquet_file.h"
#include "data/lerobot/video_frames.h"

namespace cohort::data {

inline constexpr std::array<std::int64_t, 5> kLeRobotSteps{7, 9, 6, 11, 8};
inline constexpr std::array<int, 5> kLeRobotTasks{0, 1, 0, 0, 1};
inline const char* lerobot_task(std::int64_t episode) {
  return kLeRobotTasks[static_cast<std::size_t>(episode)] == 0 ? "put the cube into the bowl" : "open the drawer";
}
/// The number of an episode's first step.
inline std::int64_t lerobot_begin(std::int64_t episode) {
  std::int64_t begin = 0;
  for (std::int64_t e = 0; e < episode; ++e) begin += kLeRobotSteps[static_cast<std::size_t>(e)];
  return begin;
}

/// Element `e` of a number field in step `t` of an episode.
inline double lerobot_value(const std::string& field, std::int64_t episode, std::int64_t t, std::int64_t e) {
  const std::int64_t i = lerobot_begin(episode) + t, steps = kLeRobotSteps[static_cast<std::size_t>(episode)];
  const auto x = static_cast<double>(i), element = static_cast<double>(e);
  if (field == "action") return x + element / 8;
  if (field == "observation.state") return e == 0 ? x / 2 : -x;
  if (field == "observation.grid") return 100 * x + element;
  if (field == "observation.force") return x / 3 + element;
  if (field == "observation.counter") return static_cast<double>((std::int64_t{1} << 53) + 1 + i);
  if (field == "observation.buttons") return static_cast<double>((i + e) % 256);
  if (field == "observation.noisy") return i % 5 == 3 ? std::numeric_limits<double>::quiet_NaN() : x / 4;
  if (field == "next.done") return t == steps - 1;
  if (field == "timestamp") return static_cast<float>(static_cast<double>(t) / 10);
  if (field == "frame_index") return static_cast<double>(t);
  if (field == "episode_index") return static_cast<double>(episode);
  if (field == "index") return x;
  if (field == "task_index") return kLeRobotTasks[static_cast<std::size_t>(episode)];
  ADD_FAILURE() << "no formula for " << field;
  return 0;
}

/// The number that a picture shows as eight bars; -1 where the field below them has not its colour.
inline std::int64_t shown_number(const std::uint8_t* rgb, std::int64_t height, std::int64_t width) {
  std::int64_t number = 0;
  for (std::int64_t bar = 0; bar < 8; ++bar) {
    const std::int64_t x = bar * (width / 8) + width / 16, y = height / 4;
    number = number * 2 + (rgb[(y * width + x) * 3 + 1] > 127 ? 1 : 0);
  }
  constexpr std::array<int, 3> kColour{200, 60, 30};
  constexpr int kColourTolerance = 12;  // of lossy coding at these small sizes
  const std::uint8_t* pixel = rgb + (height * 7 / 8 * width + width / 2) * 3;
  for (std::size_t c = 0; c < 3; ++c)
    if (std::abs(pixel[c] - kColour[c]) > kColourTolerance) return -1;
  return number;
}

inline std::int64_t shown_number(const StoredImage& stored) {
  Image image;
  if (stored.encoding == ImageEncoding::kJpegOrPng)
    decode_image(stored.bytes, 3, image);
  else
    return shown_number(reinterpret_cast<const std::uint8_t*>(stored.bytes.data()), stored.height, stored.width);
  return shown_number(image.pixels.data(), image.height, image.width);
}

/// Whether two numbers are the same, NaN being equal to itself.
inline bool same_number(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// Every number, text and picture of an episode; `number` is its own in the set.
inline void expect_lerobot_episode(const EpisodeSource& source, std::int64_t place, std::int64_t number) {
  const auto episode = source.open(place);
  const std::int64_t steps = kLeRobotSteps[static_cast<std::size_t>(number)];
  ASSERT_EQ(episode->steps(), steps);
  ASSERT_EQ(source.steps(place), steps);
  std::string scratch;
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const StepField& field = source.fields()[f];
    SCOPED_TRACE(field.name + " of episode " + std::to_string(number));
    if (field.kind == StepKind::kNumber) {
      const std::int64_t elements = field.elements();
      std::vector<double> values(static_cast<std::size_t>(steps * elements));
      std::vector<float> rounded(values.size());
      episode->read(f, 0, steps, std::span(values));
      episode->read(f, 0, steps, std::span(rounded));
      for (std::size_t v = 0; v < values.size(); ++v) {
        const auto at = static_cast<std::int64_t>(v);
        const double expected = lerobot_value(field.name, number, at / elements, at % elements);
        const double stored = field.type == ElementType::kFloat32 ? static_cast<float>(expected) : expected;
        EXPECT_TRUE(same_number(values[v], stored)) << values[v] << " is not " << stored << " at " << v;
        EXPECT_TRUE(same_number(rounded[v], static_cast<float>(expected))) << rounded[v] << " at " << v;
      }
      continue;
    }
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t i = lerobot_begin(number) + t;
      if (field.kind == StepKind::kText) {
        EXPECT_EQ(episode->text(f, t), field.name == "task" ? lerobot_task(number) : "step " + std::to_string(i));
        continue;
      }
      EXPECT_EQ(shown_number(episode->image(f, t, scratch)), field.name.ends_with("wrist") ? i + 64 : i);
    }
  }
}

/// A copy that a test may damage.
inline std::filesystem::path copy_of_lerobot(const OwnFolder& folder, const std::string& set) {
  const auto to = folder.path() / set;
  std::filesystem::copy(fixture("lerobot") / set, to, std::filesystem::copy_options::recursive);
  return to;
}

/// Replaces a text in a file, which must be there.
inline void replace_in(const std::filesystem::path& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << path;
  text.replace(at, from.size(), to);
  write_file_atomically(path, text);
}

}  // namespace cohort::data

#define SKIP_WITHOUT_LEROBOT()                                                                          \
  if (const std::string why = ::cohort::data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why; \
  if (const std::string why = ::cohort::data::video_frames_unavailable(); !why.empty()) GTEST_SKIP() << why
