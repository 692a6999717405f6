// LeRobot data sets that are written, against what they were written from.
#include "data/lerobot/lerobot_writer.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/philox.h"
#include "data/convert.h"
#include "data/expect_error.h"
#include "data/lerobot/lerobot_statistics.h"
#include "data/lerobot/lerobot_videos.h"
#include "data/lerobot_fixture.h"
#include "data/open_episodes.h"
#include "data/robot_windows.h"
#include "data/sample_memory.h"
#include "report/file_size_limit.h"

namespace cohort::data {
namespace {

namespace fs = std::filesystem;

ConvertSettings to_lerobot(const std::string& images) {
  ConvertSettings settings{.to = "lerobot", .episodes = {}};
  settings.lerobot.images = images;
  settings.lerobot.keep_float64 = true;
  return settings;
}

bool says(const ConvertReport& report, const std::string& text) {
  for (const std::string& line : report.said)
    if (line.find(text) != std::string::npos) return true;
  return false;
}

/// Numbers of all steps, bit by bit.
std::vector<double> all_of(const EpisodeSource& source, std::int64_t e, const std::string& name) {
  const std::size_t field = source.field_index(name);
  std::vector<double> values(static_cast<std::size_t>(source.steps(e) * source.fields()[field].elements()));
  source.open(e)->read(field, 0, source.steps(e), std::span(values));
  return values;
}

Image picture_of(const EpisodeSource& source, std::int64_t e, const std::string& name, std::int64_t t) {
  std::string scratch;
  const StoredImage stored = source.open(e)->image(source.field_index(name), t, scratch);
  Image image;
  if (stored.encoding == ImageEncoding::kJpegOrPng) {
    decode_image(stored.bytes, 3, image);
  } else {
    image.resize(stored.height, stored.width, stored.channels);
    std::copy(stored.bytes.begin(), stored.bytes.end(), image.pixels.begin());
  }
  return image;
}

TEST(LeRobotWriter, ASetComesBackWithEveryNumberTextAndPicture) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  for (const char* images : {"image", "video"}) {
    const auto source = open_episodes(fixture("lerobot/v3"), {.split = "all"});
    const ConvertReport report = convert_episodes(*source, folder.path() / images, to_lerobot(images));
    EXPECT_EQ(report.episodes, 5);
    EXPECT_TRUE(says(report, "observation.noisy: values that are not finite"));
    const auto back = open_episodes(report.path);
    ASSERT_EQ(back->size(), 5);
    EXPECT_EQ(back->fields().size(), source->fields().size());
    for (std::int64_t e = 0; e < 5; ++e) expect_lerobot_episode(*back, e, e);
    EXPECT_EQ(back->open(4)->metadata("robot_type"), "so100");
    EXPECT_EQ(back->open(4)->metadata("fps"), "10");
  }
}

TEST(LeRobotWriter, Hdf5BecomesTheFeaturesThatLeRobotKnowsWithTheSameBits) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto source = open_episodes(fixture("libero.hdf5"), {.split = "whole"});
  ConvertSettings settings = to_lerobot("image");
  settings.lerobot.fps = 20;
  settings.lerobot.state = {"obs/ee_pos", "obs/gripper_states[0:1]"};
  const auto back = open_episodes(convert_episodes(*source, folder.path() / "set", settings).path);
  ASSERT_EQ(back->size(), source->size());
  for (std::int64_t e = 0; e < back->size(); ++e) {
    for (const auto& [name, from] :
         {std::pair("action", "actions"), std::pair("observation.ee_pos", "obs/ee_pos"),
          std::pair("next.reward", "rewards"), std::pair("observation.joint_states", "obs/joint_states")})
      EXPECT_EQ(all_of(*back, e, name), all_of(*source, e, from)) << name;
    const auto state = all_of(*back, e, "observation.state"), pos = all_of(*source, e, "obs/ee_pos"),
               gripper = all_of(*source, e, "obs/gripper_states");
    ASSERT_EQ(state.size(), static_cast<std::size_t>(4 * back->steps(e)));
    for (std::size_t t = 0; 4 * t < state.size(); ++t) {
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(state[4 * t + i], static_cast<float>(pos[3 * t + i]));
      EXPECT_EQ(state[4 * t + 3], static_cast<float>(gripper[2 * t]));
    }
    const auto times = all_of(*back, e, "timestamp");
    for (std::size_t t = 0; t < times.size(); ++t) EXPECT_EQ(times[t], static_cast<float>(static_cast<double>(t) / 20));
    EXPECT_EQ(picture_of(*back, e, "observation.images.agentview_rgb", 2).pixels,
              picture_of(*source, e, "obs/agentview_rgb", 2).pixels);
    EXPECT_NE(back->open(e)->text(back->field_index("task"), 0), "") << "what problem_info says";
    EXPECT_EQ(back->open(e)->metadata("data/problem_info"), source->open(e)->metadata("data/problem_info"));
  }
}

TEST(LeRobotWriter, RldsComesWithItsTasksFlagsAndNotesWithoutWhatLeRobotCannotHold) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto source = open_episodes(fixture("arm"));
  const ConvertReport report = convert_episodes(*source, folder.path() / "set", to_lerobot("image"));
  EXPECT_THAT(report.left_out, ::testing::Contains(::testing::HasSubstr("pictures are not all of one size")));
  const auto back = open_episodes(report.path);
  ASSERT_EQ(back->size(), source->size());
  for (std::int64_t e = 0; e < back->size(); ++e) {
    const auto a = source->open(e), b = back->open(e);
    EXPECT_EQ(b->text(back->field_index("task"), 0), a->text(source->field_index("language_instruction"), 0));
    EXPECT_EQ(b->metadata("file_path"), a->metadata("episode_metadata/file_path"));
    for (const auto& [name, from] : {std::pair("action", "action"), std::pair("observation.pose", "observation/pose"),
                                     std::pair("is_first", "is_first"), std::pair("next.reward", "reward")})
      EXPECT_EQ(all_of(*back, e, name), all_of(*source, e, from)) << name;
    std::string left, right;
    for (std::int64_t t = 0; t < a->steps(); ++t)
      EXPECT_EQ(b->image(back->field_index("observation.images.image"), t, left).bytes,
                a->image(source->field_index("observation/image"), t, right).bytes);
  }
}

TEST(LeRobotWriter, NamesOfJointsGoFromSetToSet) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  LeRobotWriter out(folder.path() / "a",
                    {{.name = "action", .dtype = "float32", .shape = {2}, .names = {"hip", "knee"}}},
                    {.fps = 50, .robot_type = "leg"});
  const std::vector<float> action{1, 2};
  out.begin_episode(1);
  out.add(0, std::as_bytes(std::span(action)));
  out.end_episode({"kick"});
  out.finish();
  // As LeRobot's older recorders have them.
  replace_in(folder.path() / "a" / "meta" / "info.json", "\"names\": [", "\"names\": {\"motors\": [");
  replace_in(folder.path() / "a" / "meta" / "info.json", "\"knee\"\n            ]", "\"knee\"\n            ]}");
  convert_episodes(*open_episodes(folder.path() / "a"), folder.path() / "b", to_lerobot("image"));
  const auto info = parse_json<nlohmann::json>(read_file(folder.path() / "b" / "meta" / "info.json"));
  EXPECT_EQ(info["features"]["action"]["names"], nlohmann::json({"hip", "knee"}));
  EXPECT_EQ(info["robot_type"], "leg");
  EXPECT_EQ(info["fps"], 50);
}

TEST(LeRobotWriter, WindowsForTrainingAreThoseOfTheSource) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto source = open_episodes(fixture("libero.hdf5"), {.split = "whole"});
  ConvertSettings settings = to_lerobot("image");
  settings.lerobot.keep_float64 = false;
  const auto set = convert_episodes(*source, folder.path() / "set", settings).path.string();
  RobotDataSettings from;
  from.paths = {fixture("libero.hdf5").string()};
  from.actions = {"actions"};
  from.proprio = {"obs/ee_pos", "obs/joint_states"};
  from.images = {"obs/agentview_rgb"};
  from.image_transforms = {"resize(8, 8)"};
  from.action_steps = 4;
  from.statistics_cache = "never";
  RobotDataSettings to = from;
  to.paths = {set};
  to.actions = {"action"};
  to.proprio = {"observation.ee_pos", "observation.joint_states"};
  to.images = {"observation.images.agentview_rgb"};
  const RobotWindows windows(from), converted(to);
  ASSERT_EQ(windows.size(), 10);
  ASSERT_EQ(converted.size(), 10);
  for (std::int64_t i = 0; i < windows.size(); ++i) {
    const Sample a(windows, i, 0), b(converted, i, 0);
    EXPECT_EQ(a.memory, b.memory) << i;
  }
}

TEST(LeRobotWriter, WithoutBeingToldItNarrowsFloat64AndSaysWhatItAssumed) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto source = open_episodes(fixture("robomimic.hdf5"), {.split = "whole"});
  ConvertSettings settings = to_lerobot("image");
  settings.lerobot.keep_float64 = false;
  const ConvertReport report = convert_episodes(*source, folder.path() / "set", settings);
  for (const char* line : {"fps: 30 is assumed", "task: the data have no instruction", "float64 is written as float32",
                           "observation.state: obs/"})
    EXPECT_TRUE(says(report, line)) << line;
  const auto back = open_episodes(report.path);
  EXPECT_EQ(back->fields()[back->field_index("action")].type, ElementType::kFloat32);
  const auto wide = all_of(*source, 0, "actions"), narrow = all_of(*back, 0, "action");
  for (std::size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(narrow[i], static_cast<float>(wide[i]));
}

TEST(LeRobotWriter, FilesEndAtTheirSizeAndEpisodesAreFoundInThem) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  constexpr std::int64_t kSteps = 40, kWide = 8000, kSide = 64;
  LeRobotWriter out(
      folder.path() / "set",
      {{.name = "action", .dtype = "float32", .shape = {kWide}},
       {.name = "observation.images.noise", .dtype = "video", .shape = {kSide, kSide, 3}}},
      {.fps = 0.1, .vcodec = "h264", .chunks_size = 2, .data_files_size_in_mb = 1, .video_files_size_in_mb = 1});
  for (std::int64_t e = 0; e < 5; ++e) {
    RandomStream random(1, RandomPurpose::kTest, static_cast<std::uint64_t>(e), 0);
    std::uint64_t drawn = 0;
    std::vector<float> actions(static_cast<std::size_t>(kSteps * kWide));
    for (float& value : actions) value = random.uniform(drawn++);
    out.begin_episode(kSteps);
    out.add(0, std::as_bytes(std::span(actions)));
    std::string pixels(static_cast<std::size_t>(kSide * kSide * 3), '\0');
    for (std::int64_t t = 0; t < kSteps; ++t) {
      for (char& value : pixels) value = static_cast<char>(random.uniform(drawn++) * 255);
      out.add_picture(
          1, {.encoding = ImageEncoding::kRaw, .bytes = pixels, .height = kSide, .width = kSide, .channels = 3});
    }
    out.end_episode(std::vector<std::string>(kSteps, e < 3 ? "one" : "two"));
  }
  out.finish();
  // An episode of numbers has 1.3 MB.
  EXPECT_TRUE(fs::exists(folder.path() / "set/data/chunk-002/file-000.parquet"));
  EXPECT_FALSE(fs::exists(folder.path() / "set/data/chunk-002/file-001.parquet"));
  // And its video 400 s: none is longer than 1000, whatever its size.
  EXPECT_TRUE(fs::exists(folder.path() / "set/videos/observation.images.noise/chunk-001/file-000.mp4"));
  EXPECT_FALSE(fs::exists(folder.path() / "set/videos/observation.images.noise/chunk-001/file-001.mp4"));
  const auto back = open_episodes(folder.path() / "set");
  ASSERT_EQ(back->size(), 5);
  for (std::int64_t e = 0; e < 5; ++e) {
    RandomStream random(1, RandomPurpose::kTest, static_cast<std::uint64_t>(e), 0);
    std::uint64_t drawn = 0;
    EXPECT_EQ(all_of(*back, e, "action")[0], random.uniform(drawn++));
    EXPECT_EQ(back->open(e)->text(back->field_index("task"), 7), e < 3 ? "one" : "two");
    std::string scratch;
    EXPECT_EQ(back->open(e)->image(back->field_index("observation.images.noise"), kSteps - 1, scratch).height, kSide);
  }
}

TEST(LeRobotWriter, AVideoFileEndsBeforeTheEpisodeThatWouldMakeItTooLarge) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  constexpr std::int64_t kFrames = 20, kBytes = 60000;
  const auto path = [&](std::int64_t number) { return folder.path() / format("{}.mp4", number); };
  LeRobotVideos videos(path, 64, 64, 10, kBytes, lerobot_video_settings("h264", 64, 64));
  const RandomStream random(1, RandomPurpose::kTest, 0, 0);
  std::vector<LeRobotVideoPlace> places;
  std::uint64_t drawn = 0;
  for (int e = 0; e < 6; ++e) {
    videos.begin_episode(kFrames);
    std::vector<std::uint8_t> pixels(64 * 64 * 3);
    for (std::int64_t t = 0; t < kFrames; ++t) {
      for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random.uniform(drawn++) * 255);
      videos.add(pixels);
    }
    places.push_back(videos.end_episode());
  }
  videos.finish();
  EXPECT_GT(places.back().number, 0);
  for (std::size_t e = 0; e < places.size(); ++e) {
    const bool follows = e > 0 && places[e].number == places[e - 1].number;
    EXPECT_EQ(places[e].begin, follows ? places[e - 1].end : 0);
    EXPECT_EQ(places[e].end, places[e].begin + 2);
    EXPECT_LT(static_cast<std::int64_t>(fs::file_size(path(places[e].number))), kBytes + kBytes / 4)
        << "the index comes on top";
  }
}

TEST(LeRobotWriter, WhatLeRobotCannotHoldIsNamedAndNothingIsLeft) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const fs::path set = folder.path() / "above" / "set";
  const auto writer = [&](LeRobotFeature feature, LeRobotWriterSettings settings = {}) {
    LeRobotWriter(set, {std::move(feature)}, settings);
  };
  EXPECT_ERROR(writer({"observation/state", "float32", {3}}), "'observation/state' is no name of a feature");
  EXPECT_ERROR(writer({"a", "complex64", {3}}), "the feature a has the dtype complex64");
  EXPECT_ERROR(writer({"a", "float32", {1, 2, 3, 4, 5, 6}}), "6 dimensions");
  EXPECT_ERROR(writer({"a", "float32", {0}}), "0 elements");
  EXPECT_ERROR(writer({"index", "int64", {1}}), "index would be written twice");
  EXPECT_ERROR(writer({"a", "video", {63, 64, 3}}), "whose sides are even: store them as pictures (--images image)");
  EXPECT_ERROR(writer({"a", "video", {32, 32, 3}}, {.vcodec = "libsvtav1"}), "choose h264 (--vcodec h264)");
  EXPECT_ERROR(writer({"a", "video", {64, 64, 3}}, {.vcodec = "vp9"}), "'vp9' is no encoder of videos");
  EXPECT_ERROR(writer({"a", "float32", {1}}, {.fps = 0}), "0 steps per second");
  EXPECT_FALSE(fs::exists(folder.path() / "above"));
  const auto source = open_episodes(fixture("lerobot/v3"));
  ConvertSettings settings = to_lerobot("gif");
  EXPECT_ERROR(convert_episodes(*source, set, settings), "pictures are stored as video or image, not 'gif'");
  {
    const test::FileSizeLimit limit(3000);
    EXPECT_ERROR(convert_episodes(*source, set, to_lerobot("video")), "cannot write");
    EXPECT_ERROR(convert_episodes(*source, set, to_lerobot("image")), "cannot write");
  }
  EXPECT_FALSE(fs::exists(folder.path() / "above"));
  fs::create_directories(set);
  convert_episodes(*source, set, to_lerobot("image"));  // an empty folder is none in the way
  EXPECT_ERROR(convert_episodes(*source, set, to_lerobot("image")), "exists already and is not empty");
}

TEST(LeRobotWriter, PicturesOfAnotherSizeAndStepsWithoutOneAreRefused) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  LeRobotWriter out(folder.path() / "set", {{.name = "a", .dtype = "image", .shape = {4, 4, 3}}}, {});
  out.begin_episode(2);
  const std::string pixels(5 * 4 * 3, 'x');
  const auto add = [&](std::string_view bytes, std::int64_t height) {
    out.add_picture(0, {.encoding = ImageEncoding::kRaw, .bytes = bytes, .height = height, .width = 4, .channels = 3});
  };
  add(std::string_view(pixels).substr(12), 4);
  EXPECT_ERROR(add(pixels, 5), "the pictures of a change their size in step 1: 5 x 4 x 3, not 4 x 4 x 3");
  EXPECT_ERROR(add("", 4), "a has no picture in step 2");
}

TEST(LeRobotStatistics, SampledFramesAreThoseOfTheFormula) {
  EXPECT_EQ(sampled_frames(1), std::vector<std::int64_t>{0});
  EXPECT_EQ(sampled_frames(100).size(), 100u);
  const auto frames = sampled_frames(1000);  // 1000^0.75 is 177.8
  EXPECT_EQ(frames.size(), 177u);
  EXPECT_EQ(frames.back(), 999);
  EXPECT_EQ(frames[1], 6);  // 999 / 176 is 5.68
}

TEST(LeRobotStatistics, EpisodesTogetherHaveTheMomentsOfAllSteps) {
  const std::vector<double> first{1, 10, 2, 20, 4, 10}, second{7, -5};
  SetStatistics set;
  set.add(statistics_of(first, 2, 3));
  set.add(statistics_of(second, 2, 1));
  const FeatureStatistics all = set.finish();
  EXPECT_EQ(all.count, 4);
  EXPECT_EQ(all.min, (std::vector<double>{1, -5}));
  EXPECT_EQ(all.max, (std::vector<double>{7, 20}));
  EXPECT_DOUBLE_EQ(all.mean[0], 3.5);
  EXPECT_DOUBLE_EQ(all.std[0], std::sqrt((2.5 * 2.5 + 1.5 * 1.5 + 0.5 * 0.5 + 3.5 * 3.5) / 4));
  const double nan = std::nan("");
  const FeatureStatistics sparse = statistics_of(std::vector<double>{1, nan, 3, nan}, 2, 2);
  EXPECT_FALSE(sparse.finite);
  EXPECT_EQ(sparse.mean, (std::vector<double>{2, 0}));
}

}  // namespace
}  // namespace cohort::data
