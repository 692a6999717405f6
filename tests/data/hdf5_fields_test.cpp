// Which arrays of an HDF5 file become fields and cameras, and what is said about those that do not.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/convert.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/hdf5/episode_layout.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/hdf5/metadata.h"
#include "data/inspect.h"
#include "data/open_episodes.h"
#include "data/robot_windows.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

class Hdf5Fields : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  }
  /// Rows of `width` numbers: row r is r, r + 0.5, ...
  static std::vector<float> rows(std::int64_t count, std::int64_t width) {
    std::vector<float> values;
    for (std::int64_t r = 0; r < count; ++r)
      for (std::int64_t k = 0; k < width; ++k) values.push_back(static_cast<float>(r) + 0.5f * static_cast<float>(k));
    return values;
  }
  /// Demos of 5, 6, ... steps; `extra[d]` rows more of obs/tip in demo d.
  fs::path write(const std::string& name, const std::vector<std::int64_t>& extra) const {
    Hdf5Writer writer(folder_.path() / name);
    for (std::size_t d = 0; d < extra.size(); ++d) {
      const std::int64_t steps = 5 + static_cast<std::int64_t>(d), tips = steps + extra[d];
      std::vector<float> actions = rows(steps, 2), tip = rows(tips, 3);
      writer.begin_demo(steps);
      writer.add("actions", make_view(actions.data(), {steps, 2}), false);
      writer.add("obs/tip", make_view(tip.data(), {tips, 3}), false);
    }
    writer.finish();
    return folder_.path() / name;
  }
  OwnFolder folder_;
};

TEST_F(Hdf5Fields, IdleStepsAreLeftOutAndCounted) {
  // The arm moves in step 1, the gripper in step 3; the first step does nothing, whatever its gripper is.
  std::vector<float> actions{0, 0, -1, 0.5f, 0, -1, 0, 0, -1, 0, 0, 1, 0, 0, 1}, tip{0, 1, 2, 3, 4};
  const fs::path path = folder_.path() / "pauses.hdf5";
  Hdf5Writer writer(path);
  writer.begin_demo(5);
  writer.add("actions", make_view(actions.data(), {5, 3}), false);
  writer.add("obs/tip", make_view(tip.data(), {5, 1}), false);
  writer.finish();
  const auto source = open_episodes(path, {.split = "all", .step_filter = "idle(actions)"});
  EXPECT_EQ(source->steps(0), 2);
  EXPECT_NE(source->selection().find("idle(actions): 3 of 5 steps are left out"), std::string::npos)
      << source->selection();
  std::vector<float> values(2);
  source->open(0)->read(source->field_index("obs/tip"), 0, 2, values);
  EXPECT_EQ(values, (std::vector<float>{1, 3}));
  EXPECT_EQ(open_episodes(path, {.split = "all"})->steps(0), 5);
  EXPECT_NE(source->content_hash(), open_episodes(path, {.split = "all"})->content_hash());
  EXPECT_ERROR(open_episodes(path, {.split = "all", .step_filter = "still(actions)"}), "known is idle(ACTION");
  EXPECT_ERROR(open_episodes(path, {.split = "all", .step_filter = "idle(action)"}), "actions");
}

TEST_F(Hdf5Fields, GroupsAtTheRootAreEpisodesWhereTheyHoldActions) {
  // traj_0, traj_1, traj_2 of 14, 9 and 21 actions, observations one longer, as ManiSkill writes them.
  const Hdf5Episodes episodes(fixture("root_groups.h5"));
  ASSERT_EQ(episodes.size(), 3);
  EXPECT_EQ(episodes.steps(0), 14);
  EXPECT_EQ(episodes.steps(1), 9);
  EXPECT_EQ(episodes.steps(2), 21);
  for (const char* field : {"actions", "obs", "success"}) EXPECT_NO_THROW(episodes.field_index(field)) << field;
  std::vector<float> values(9 * 4);
  episodes.open(1)->read(episodes.field_index("actions"), 0, 9, values);
  EXPECT_NE(episodes.open(1)->location().find("root_groups.h5: /traj_1"), std::string::npos);
}

TEST_F(Hdf5Fields, GroupsOfAGroupForEachSplitAreEpisodes) {
  const Hdf5Episodes episodes(fixture("split_groups.h5"));
  ASSERT_EQ(episodes.size(), 3);
  for (std::int64_t e = 0; e < 3; ++e) {
    EXPECT_EQ(episodes.steps(e), 3 + e);
    std::vector<float> values(static_cast<std::size_t>(2 * (3 + e)));
    episodes.open(e)->read(episodes.field_index("action"), 0, 3 + e, values);
    EXPECT_EQ(values, std::vector<float>(values.size(), static_cast<float>(e)));
  }
  EXPECT_NO_THROW(episodes.field_index("observations/qpos"));
  EXPECT_NE(episodes.open(2)->location().find("split_groups.h5: /valid/ep0"), std::string::npos);
}

TEST_F(Hdf5Fields, TheObservationAfterTheLastActionIsNotUsedAndThatIsSaid) {
  for (const std::vector<std::int64_t>& extra : {std::vector<std::int64_t>{1, 1, 1}, {1, 0, 0}, {0, 0, 1}, {0, 1, 0}}) {
    const std::string name = format("{}{}{}.hdf5", extra[0], extra[1], extra[2]);
    SCOPED_TRACE(name);
    const Hdf5Episodes episodes(write(name, extra));
    EXPECT_EQ(episodes.steps(2), 7);
    const std::size_t tip = episodes.field_index("obs/tip");
    std::vector<float> values(21);
    episodes.open(2)->read(tip, 0, 7, values);
    EXPECT_EQ(values, rows(7, 3));
    const auto count = extra[0] + extra[1] + extra[2];
    EXPECT_EQ(episodes.selection(), format("obs/tip: one row more than there are steps in {} of 3 demos; this row, the "
                                           "observation after the last action, is not used",
                                           count));
    EXPECT_NE(inspect_text(episodes).find("obs/tip: one row more"), std::string::npos);
  }
}

TEST_F(Hdf5Fields, WithoutACountTheActionsTellTheSteps) {
  const Hdf5Shapes shapes{{"actions", {9, 4}}, {"obs/block", {10, 5}}, {"obs/tip", {10, 3}}};
  EXPECT_EQ(steps_of_demo(shapes, {}), 9);
  EXPECT_EQ(steps_of_demo(shapes, {{"num_samples", "10"}}), 10);
  EXPECT_EQ(steps_of_demo({{"action_dict/gripper", {7}}, {"observation/a", {8}}, {"observation/b", {8}}}, {}), 7);
  EXPECT_EQ(steps_of_demo({{"a", {4}}, {"b", {5}}, {"c", {5}}}, {}), 5) << "what most have";
}

TEST_F(Hdf5Fields, WhatDoesNotFitIsNamedWithBothCountsAndARemedy) {
  const fs::path path = write("two_more.hdf5", {2, 2, 2});
  const Hdf5Episodes episodes(path);
  EXPECT_ERROR(episodes.field_index("obs/tip"), "holds 'obs/tip', but it is no field: it has 7 rows in " +
                                                    path.string() +
                                                    ": /data/demo_0, which has 5 steps: write a row per step");
  EXPECT_NE(inspect_text(episodes).find("obs/tip: it has 7 rows in"), std::string::npos) << inspect_text(episodes);
}

/// A demo of 4 steps with a camera whose pixel (channel c, row y, column x) of step t is t * 50 + c * 10 + y - x.
std::uint8_t plane_pixel(std::int64_t t, std::int64_t c, std::int64_t y, std::int64_t x) {
  return static_cast<std::uint8_t>(t * 50 + c * 10 + y - x + 16);
}

TEST_F(Hdf5Fields, ChannelsMayStandBeforeRowsAndColumns) {
  constexpr std::int64_t kSteps = 4, kHeight = 8, kWidth = 9;
  for (const std::int64_t channels : {std::int64_t{3}, std::int64_t{1}}) {
    for (const bool compress : {false, true}) {
      const fs::path path = folder_.path() / format("planes{}{}.hdf5", channels, compress ? "z" : "");
      {
        Hdf5Writer writer(path);
        std::vector<float> actions = rows(kSteps, 2);
        std::vector<std::uint8_t> planes;
        for (std::int64_t t = 0; t < kSteps; ++t)
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t y = 0; y < kHeight; ++y)
              for (std::int64_t x = 0; x < kWidth; ++x) planes.push_back(plane_pixel(t, c, y, x));
        writer.begin_demo(kSteps);
        writer.add("actions", make_view(actions.data(), {kSteps, 2}), false);
        writer.add("obs/cam", make_view(planes.data(), {kSteps, channels, kHeight, kWidth}), compress);
        writer.finish();
      }
      const Hdf5Episodes episodes(path);
      const std::size_t camera = episodes.field_index("obs/cam");
      EXPECT_EQ(episodes.fields()[camera].kind, StepKind::kImage);
      EXPECT_EQ(episodes.fields()[camera].shape, (std::vector<std::int64_t>{kHeight, kWidth, channels}));
      std::string scratch;
      for (std::int64_t t = 0; t < kSteps; ++t) {
        const StoredImage image = episodes.open(0)->image(camera, t, scratch);
        ASSERT_EQ(image.height, kHeight);
        ASSERT_EQ(image.width, kWidth);
        ASSERT_EQ(image.channels, channels);
        for (std::int64_t y = 0; y < kHeight; ++y)
          for (std::int64_t x = 0; x < kWidth; ++x)
            for (std::int64_t c = 0; c < channels; ++c)
              ASSERT_EQ(
                  static_cast<std::uint8_t>(image.bytes[static_cast<std::size_t>((y * kWidth + x) * channels + c)]),
                  plane_pixel(t, c, y, x));
      }
    }
  }
}

TEST_F(Hdf5Fields, WhatIsNoCameraIsToldWithWhatACameraIs) {
  const fs::path path = folder_.path() / "floats.hdf5";
  {
    Hdf5Writer writer(path);
    std::vector<float> actions = rows(4, 2), frames(std::size_t{4} * 8 * 9 * 3, 0.5f);
    std::vector<std::uint8_t> alpha(std::size_t{4} * 8 * 9 * 4), picture(std::size_t{4} * 8 * 9 * 3);
    writer.begin_demo(4);
    writer.add("actions", make_view(actions.data(), {4, 2}), false);
    writer.add("obs/floats", make_view(frames.data(), {4, 8, 9, 3}), false);
    writer.add("obs/alpha", make_view(alpha.data(), {4, 8, 9, 4}), false);
    writer.add("obs/good", make_view(picture.data(), {4, 8, 9, 3}), false);
    writer.finish();
  }
  const auto open = [&](const std::string& camera) {
    RobotDataSettings settings;
    settings.paths = {path.string()};
    settings.actions = {"actions"};
    settings.images = {camera};
    settings.statistics_cache = "never";
    settings.action_normalization = {"none"};
    return message_of([&] { RobotWindows windows(settings); });
  };
  const std::string floats = open("obs/floats"), alpha = open("obs/alpha");
  EXPECT_NE(
      floats.find("obs/floats of " + path.string() + " holds float32 of 8 x 9 x 3 in every step; a camera is uint8"),
      std::string::npos)
      << floats;
  EXPECT_NE(floats.find("(x * 255).round().clip(0, 255).astype('uint8')"), std::string::npos) << floats;
  EXPECT_NE(floats.find("cameras of these data: obs/good"), std::string::npos) << floats;
  EXPECT_NE(alpha.find("holds uint8 of 8 x 9 x 4 in every step"), std::string::npos) << alpha;
  EXPECT_EQ(open("obs/good"), "");
}

TEST_F(Hdf5Fields, ANameThatIsNotUtf8IsReadButNotWrittenToRlds) {
  const fs::path path = folder_.path() / "latin1.hdf5", out = folder_.path() / "converted";
  {
    Hdf5Writer writer(path);
    std::vector<float> actions = rows(4, 2);
    writer.begin_demo(4);
    writer.add("actions", make_view(actions.data(), {4, 2}), false);
    writer.add("obs/gr\xF6sse", make_view(actions.data(), {4, 2}), false);
    writer.finish();
  }
  const Hdf5Episodes episodes(path);
  std::vector<float> values(8);
  episodes.open(0)->read(episodes.field_index("obs/gr\xF6sse"), 0, 4, values);
  EXPECT_EQ(values, rows(4, 2));
  EXPECT_ERROR(convert_episodes(episodes, out, {.to = "rlds"}),
               "the name 'observation/gr\\xf6sse' is not UTF-8 at byte 14, and names in RLDS are");
  EXPECT_FALSE(fs::exists(out)) << "nothing half-written";
}

TEST_F(Hdf5Fields, AMaskNamesEveryDemoOnce) {
  // What h5py writes; fixtures/make_hdf5_fixture.py.
  EXPECT_ERROR(Hdf5Episodes(fixture("masks.hdf5"), {.filter_key = "twice"}), "/mask/twice names demo_0 more than once");
  EXPECT_EQ(Hdf5Episodes(fixture("masks.hdf5"), {.filter_key = "once"}).size(), 2);
}

}  // namespace
}  // namespace cohort::data
