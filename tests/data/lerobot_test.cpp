// LeRobot data sets against the formulas that their values and pictures were made by.
#include <algorithm>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "data/convert.h"
#include "data/expect_error.h"
#include "data/instruction_texts.h"
#include "data/lerobot/lerobot_episodes.h"
#include "data/lerobot_fixture.h"
#include "data/open_episodes.h"

namespace cohort::data {
namespace {

TEST(LeRobot, EveryNumberTextAndFrameOfVersion3IsThatOfTheFormula) {
  SKIP_WITHOUT_LEROBOT();
  const auto source = open_episodes(fixture("lerobot/v3"), {.split = "all"});
  ASSERT_EQ(source->size(), 5);
  ASSERT_EQ(source->fields().size(), 18u);
  for (std::int64_t e = 0; e < 5; ++e) expect_lerobot_episode(*source, e, e);
  EXPECT_EQ(source->open(1)->metadata("language_instruction"), "open the drawer");
  EXPECT_EQ(source->open(1)->metadata("fps"), "10");
  EXPECT_EQ(source->open(4)->metadata("episode_index"), "4");
}

TEST(LeRobot, Version21IsReadAsVersion3Is) {
  SKIP_WITHOUT_LEROBOT();
  const auto source = open_episodes(fixture("lerobot/v21"));
  ASSERT_EQ(source->size(), 2);
  ASSERT_EQ(source->fields().size(), 16u);
  for (std::int64_t e = 0; e < 2; ++e) expect_lerobot_episode(*source, e, e);
}

TEST(LeRobot, FieldsHaveTheShapesAndTypesOfTheirFeatures) {
  SKIP_WITHOUT_LEROBOT();
  const auto source = open_episodes(fixture("lerobot/v3"));
  const auto field = [&](const char* name) { return source->fields()[source->field_index(name)]; };
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(field("observation.grid").shape, (Shape{3, 4}));
  EXPECT_EQ(field("observation.counter").shape, Shape{});
  EXPECT_EQ(field("observation.force").type, ElementType::kFloat64);
  EXPECT_EQ(field("observation.buttons").type, ElementType::kUInt8);
  EXPECT_EQ(field("next.done").type, ElementType::kBool);
  EXPECT_EQ(field("observation.images.front").shape, (Shape{64, 96, 3}));
  EXPECT_EQ(field("observation.images.inset").shape, (Shape{16, 16, 3}));  // from channels first
  EXPECT_EQ(field("task").kind, StepKind::kText);
}

TEST(LeRobot, IntegersBeyond2To53AreExact) {
  SKIP_WITHOUT_LEROBOT();
  const auto source = open_episodes(fixture("lerobot/v3"), {.split = "all"});
  const std::size_t counter = source->field_index("observation.counter"), action = source->field_index("action");
  for (std::int64_t e = 0; e < source->size(); ++e) {
    const auto episode = source->open(e);
    std::vector<std::int64_t> values(static_cast<std::size_t>(episode->steps()));
    episode->read(counter, 0, episode->steps(), std::span(values));
    for (std::size_t t = 0; t < values.size(); ++t)
      EXPECT_EQ(values[t], (std::int64_t{1} << 53) + 1 + lerobot_begin(e) + static_cast<std::int64_t>(t));
  }
  std::vector<std::int64_t> no_integers(7);
  EXPECT_ERROR(source->open(0)->read(action, 0, 1, std::span(no_integers)), "action holds float32, no integers");
}

TEST(LeRobot, SplitsAndSlicesChooseEpisodes) {
  SKIP_WITHOUT_LEROBOT();
  const auto numbers = [](const std::string& split) {
    const auto source = open_episodes(fixture("lerobot/v3"), {.split = split});
    std::vector<std::string> found;
    for (std::int64_t e = 0; e < source->size(); ++e) found.emplace_back(source->open(e)->metadata("episode_index"));
    return join(found, " ");
  };
  EXPECT_EQ(numbers("auto"), "0 1 2 3");
  EXPECT_EQ(numbers("val"), "4");
  EXPECT_EQ(numbers("train[:50%]"), "0 1");
  EXPECT_EQ(numbers("train[50%:]+val"), "2 3 4");
  EXPECT_EQ(numbers("all"), "0 1 2 3 4");
  EXPECT_ERROR(numbers("test"), "has no split 'test' (asked by 'test'); it has train, val");
  const auto part = open_episodes(fixture("lerobot/v3"), {.split = "train[2:]"});
  expect_lerobot_episode(*part, 1, 3);
  EXPECT_EQ(part->selection(), "train[2:]: 2 of 5 episodes");
  // The same place whatever part was opened: training and validation are told apart by it.
  EXPECT_EQ(part->place(1), open_episodes(fixture("lerobot/v3"))->place(3));
}

TEST(LeRobot, FramesInAnyOrderFromSeveralThreadsAreTheRightOnes) {
  SKIP_WITHOUT_LEROBOT();
  const auto source = open_episodes(fixture("lerobot/v3"), {.split = "all", .cache_bytes = 1 << 20});
  const std::size_t front = source->field_index("observation.images.front"),
                    wrist = source->field_index("observation.images.wrist");
  std::vector<int> wrong(4, 0);
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < wrong.size(); ++thread)
    threads.emplace_back([&, thread] {
      std::string scratch;
      std::uint64_t random = thread + 1;
      for (int k = 0; k < 60; ++k) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const auto e = static_cast<std::int64_t>((random >> 33) % 5);
        const auto t = static_cast<std::int64_t>((random >> 40) % static_cast<std::uint64_t>(source->steps(e)));
        const bool first = k % 2 == 0;
        const auto episode = source->open(e);
        wrong[thread] +=
            shown_number(episode->image(first ? front : wrist, t, scratch)) != lerobot_begin(e) + t + (first ? 0 : 64);
        float action = 0;
        std::vector<float> row(7);
        episode->read(source->field_index("action"), t, 1, std::span(row));
        action = row[0];
        wrong[thread] += action != static_cast<float>(lerobot_begin(e) + t);
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_GT(source->bytes_held(), 0);
}

TEST(LeRobot, TheTaskIsAnInstruction) {
  SKIP_WITHOUT_LEROBOT();
  const auto source = open_episodes(fixture("lerobot/v3"), {.split = "all"});
  for (const char* name : {"task", "language_instruction"}) {
    EXPECT_TRUE(has_instructions(*source, name));
    EXPECT_EQ(distinct_instructions(*source, name, 2),
              (std::vector<std::string>{"put the cube into the bowl", "open the drawer"}));
  }
}

TEST(LeRobot, TheContentHashFollowsSelectionAndFiles) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto copy = copy_of_lerobot(folder, "v21");
  const auto hash = [&](const char* split) { return open_episodes(copy, {.split = split})->content_hash(); };
  const std::uint64_t before = hash("all");
  EXPECT_EQ(hash("train"), before);  // the same episodes
  EXPECT_NE(hash("train[:1]"), before);
  const auto table = copy / "data/chunk-001/episode_000001.parquet";
  std::filesystem::last_write_time(table, std::filesystem::last_write_time(table) + std::chrono::seconds(1));
  EXPECT_NE(hash("all"), before);
  EXPECT_GT(open_episodes(copy)->stored_bytes(), 15000);
}

TEST(LeRobot, ConvertedToHdf5AndRldsItHoldsTheSame) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto source = open_episodes(fixture("lerobot/v3"), {.split = "all"});
  const ConvertReport hdf5 = convert_episodes(*source, folder.path() / "set.hdf5", {.to = "hdf5"});
  const ConvertReport rlds = convert_episodes(*source, folder.path(), {.to = "rlds", .name = "set"});
  const std::vector<std::tuple<std::filesystem::path, std::string, std::string, std::string>> written{
      {hdf5.path, "actions", "obs/", "dones"}, {rlds.path, "action", "observation/", "is_terminal"}};
  for (const auto& [path, action, observation, done] : written) {
    SCOPED_TRACE(path);
    const auto read = open_episodes(path);
    ASSERT_EQ(read->size(), 5);
    const std::size_t a = read->field_index(action), g = read->field_index(observation + "grid"),
                      d = read->field_index(done), picture = read->field_index(observation + "images_front");
    EXPECT_EQ(distinct_instructions(*read, "language_instruction", 1),
              (std::vector<std::string>{"put the cube into the bowl", "open the drawer"}));
    std::string scratch;
    for (std::int64_t e = 0; e < 5; ++e) {
      const auto episode = read->open(e);
      const std::int64_t steps = episode->steps();
      ASSERT_EQ(steps, source->steps(e));
      std::vector<float> actions(static_cast<std::size_t>(steps * 7)), grid(static_cast<std::size_t>(steps * 12));
      std::vector<std::int64_t> dones(static_cast<std::size_t>(steps));
      episode->read(a, 0, steps, std::span(actions));
      episode->read(g, 0, steps, std::span(grid));
      episode->read(d, 0, steps, std::span(dones));
      for (std::int64_t t = 0; t < steps; ++t) {
        const auto at = static_cast<std::size_t>(t);
        EXPECT_EQ(actions[at * 7 + 3], static_cast<float>(lerobot_value("action", e, t, 3)));
        EXPECT_EQ(grid[at * 12 + 7], static_cast<float>(lerobot_value("observation.grid", e, t, 7)));
        EXPECT_EQ(dones[at], t == steps - 1);
        EXPECT_EQ(shown_number(episode->image(picture, t, scratch)), lerobot_begin(e) + t);
      }
    }
  }
  EXPECT_NE(std::find(rlds.left_out.begin(), rlds.left_out.end(), "observation.phase: its dtype complex64 is not read"),
            rlds.left_out.end());
}

TEST(VideoFrames, OneAfterAnotherTheyAreDecodedWithoutSeeking) {
  SKIP_WITHOUT_LEROBOT();
  const VideoFrames videos(1 << 24);
  const auto file = fixture("lerobot/v3/videos/observation.images.front/chunk-000/file-000.mp4");
  std::string rgb;
  for (std::int64_t n = 0; n < 33; ++n) {
    const VideoFrame frame = videos.read(file, static_cast<double>(n) / 10, kFrameTolerance, rgb);
    EXPECT_EQ(shown_number(reinterpret_cast<const std::uint8_t*>(rgb.data()), frame.height, frame.width), n);
  }
  EXPECT_LE(videos.seeks(), 3);  // to the first key frame, and at most to each of the two others
  EXPECT_GT(videos.bytes(), 0);
  // Backwards each needs a key frame; the same frame twice needs nothing.
  const std::int64_t before = videos.seeks();
  videos.read(file, 3.2, kFrameTolerance, rgb);
  EXPECT_EQ(videos.seeks(), before);
  for (std::int64_t n = 32; n-- > 0;) {
    const VideoFrame frame = videos.read(file, static_cast<double>(n) / 10, kFrameTolerance, rgb);
    EXPECT_EQ(shown_number(reinterpret_cast<const std::uint8_t*>(rgb.data()), frame.height, frame.width), n);
  }
  EXPECT_NEAR(videos.look(file).end, 3.3, 1e-6);
}

TEST(VideoFrames, ATimeWithoutAFrameIsRefusedAndTheDecoderGoesOn) {
  SKIP_WITHOUT_LEROBOT();
  const VideoFrames videos(1 << 24);
  const auto file = fixture("lerobot/v3/videos/observation.images.wrist/chunk-000/file-000.mp4");
  std::string rgb;
  const auto read = [&](double seconds) { return videos.read(file, seconds, kFrameTolerance, rgb).time; };
  EXPECT_ERROR(read(0.35), "no frame within 0.0001 s of 0.350000 s: the nearest are at 0.300000 and 0.400000 s");
  EXPECT_ERROR(read(4.1), "no frame at 4.100000 s, its last one is at 4.000000 s");
  EXPECT_ERROR(read(-1), "no frame within");
  EXPECT_ERROR(read(std::numeric_limits<double>::quiet_NaN()), "a frame at nan s");
  EXPECT_NEAR(read(0.40009), 0.4, 1e-9);
  EXPECT_NEAR(read(4.0), 4.0, 1e-9);
  EXPECT_ERROR(videos.look(fixture("lerobot/none.mp4")), "there is no video");
  EXPECT_ERROR(videos.look(fixture("lerobot/v3/meta/info.json")), "info.json: it is no video");
}

}  // namespace
}  // namespace cohort::data
