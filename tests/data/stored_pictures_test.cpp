// Pictures that are missing, cut or of another size are known before the first step (fixtures/make_lerobot_pictures_fixture.py).
#include "data/stored_pictures.h"

#include <gtest/gtest.h>

#include "core/log.h"
#include "data/convert.h"
#include "data/expect_error.h"
#include "data/images/codec.h"
#include "data/lerobot_fixture.h"
#include "data/open_episodes.h"
#include "data/robot_windows.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

/// The set with the last episode's table replaced by one of the fixture's others.
fs::path set_with(const OwnFolder& folder, const std::string& table) {
  const fs::path set = folder.path() / table;
  fs::copy(fixture("lerobot_pictures"), set, fs::copy_options::recursive);
  const fs::path to = set / "data/chunk-000/episode_000002.parquet";
  if (fs::exists(set / (table + ".parquet")))
    fs::copy_file(set / (table + ".parquet"), to, fs::copy_options::overwrite_existing);
  return set;
}

RobotDataSettings settings_for(const fs::path& set) {
  RobotDataSettings settings;
  settings.paths = {set.string()};
  settings.actions = {"action"};
  settings.action_normalization = {"none"};
  settings.images = {"observation.images.front"};
  settings.image_transforms = {"resize(8, 8)"};
  settings.statistics_cache = settings.index_cache = "never";
  return settings;
}

/// What the log says meanwhile.
template <class Body>
std::string log_of(const OwnFolder& folder, const Body& body) {
  const std::string file = (folder.path() / "training.log").string();
  log::add_file(file);
  body();
  log::flush();
  log::remove_file(file);
  std::string said = read_file(file);
  fs::remove(file);
  return said;
}

TEST(StoredPictures, WhatTheirHeadAndEndSay) {
  Image image;
  image.resize(9, 7, 3);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 37);
  std::vector<std::string> encoded;
  if (has_png()) encoded.push_back(encode_png(image));
  if (has_jpeg()) encoded.push_back(encode_jpeg(image));
  for (const std::string& bytes : encoded) {
    EXPECT_EQ(picture_fault({.bytes = bytes}), "");
    EXPECT_EQ(picture_fault({.bytes = bytes + std::string(9000, '\0')}), "") << "rows of HDF5 are filled up";
    EXPECT_NE(picture_fault({.bytes = std::string_view(bytes).substr(0, bytes.size() - 10)}).find("ends early"),
              std::string::npos);
    EXPECT_NE(picture_fault({.bytes = "no picture"}).find("neither JPEG nor PNG"), std::string::npos);
  }
  EXPECT_EQ(picture_fault({}), "") << "a step without one";
  EXPECT_EQ(picture_fault({.encoding = ImageEncoding::kRaw, .bytes = "abc", .height = 1, .width = 1, .channels = 3}),
            "");
}

TEST(StoredPictures, ATableThatLacksSomeIsNamedWhenItIsOpened) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto open = [&](const char* table) {
    return log_of(folder, [&] { open_episodes(set_with(folder, table), {.index_cache = "never"}); });
  };
  const std::string said = open("lacking");
  EXPECT_NE(
      said.find("episode_000002.parquet: 2 of its 4 steps have no picture observation.images.front, the first in "
                "episode 2, step 2: a training with this camera ends there, unless data.missing_image=black is set"),
      std::string::npos)
      << said;
  EXPECT_EQ(open("whole").find("have no picture"), std::string::npos);
  // It ends there, and with black ones it does not.
  const fs::path set = folder.path() / "lacking";
  RobotDataSettings settings = settings_for(set);
  const RobotWindows windows(settings);
  EXPECT_EQ(windows.size(), 12);
}

TEST(StoredPictures, TheFirstOfAnEpisodeIsLookedAtBeforeTheFirstStep) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const fs::path damaged = set_with(folder, "first_cut");
  EXPECT_ERROR(RobotWindows(settings_for(damaged)),
               "episode 2: observation.images.front of step 0: the image is neither JPEG nor PNG");
  EXPECT_ERROR(RobotWindows(settings_for(damaged)), "set data.on_corrupt=skip");
  const fs::path other = set_with(folder, "other_size");
  const std::string said = log_of(folder, [&] { RobotWindows{settings_for(other)}; });
  EXPECT_NE(
      said.find("episode 2: observation.images.front of step 0: it has 5 x 5 pixels (height x width), but the data's "
                "description says 8 x 6; so it is in 1 of 3 episodes looked at"),
      std::string::npos)
      << said;
  EXPECT_EQ(log_of(folder, [&] { RobotWindows{settings_for(set_with(folder, "whole"))}; }).find("pixels"),
            std::string::npos);
}

TEST(StoredPictures, OnesThatWereCutAreLeftOutWhereDamageIsSkipped) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const fs::path set = set_with(folder, "cut");
  const auto rest = open_episodes(set, {.on_corrupt = "skip", .index_cache = "never"});
  EXPECT_EQ(rest->size(), 2);
  ASSERT_EQ(rest->skipped().size(), 1u);
  EXPECT_NE(rest->skipped()[0].find("observation.images.front of step 1: "), std::string::npos) << rest->skipped()[0];
  EXPECT_EQ(open_episodes(set_with(folder, "whole"), {.on_corrupt = "skip", .index_cache = "never"})->size(), 3);
  // RLDS holds the same bytes, and its checksums are sound.
  const ConvertReport written = convert_episodes(*open_episodes(set, {.index_cache = "never"}), folder.path() / "rlds",
                                                 {.to = "rlds", .episodes = {0, 1, 2}});
  const auto records = open_episodes(written.path, {.on_corrupt = "skip", .index_cache = "never"});
  EXPECT_EQ(records->size(), 2);
  ASSERT_EQ(records->skipped().size(), 1u);
  EXPECT_NE(records->skipped()[0].find("images_front of step 1: the PNG "), std::string::npos) << records->skipped()[0];
}

}  // namespace
}  // namespace cohort::data
