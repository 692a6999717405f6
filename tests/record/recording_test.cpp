// Recordings of a task in closed form, read back.
#include "record/recording.h"

#include <barrier>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "data/fixture_folder.h"
#include "data/images/codec.h"
#include "data/lerobot/lerobot_episodes.h"
#include "data/lerobot/parquet_file.h"
#include "data/lerobot/video_frames.h"
#include "data/open_episodes.h"
#include "record/replay_actor.h"
#include "report/file_size_limit.h"
#include "tasks/line_task.h"

namespace cohort::record {
namespace {

namespace fs = std::filesystem;
using data::OwnFolder;
using testing::LineExpert;
using testing::LineTask;

RecordingSettings small(std::int64_t episodes = 20) {
  RecordingSettings settings;
  settings.episodes = episodes;
  settings.first_seed = 40;
  settings.shard_episodes = 4;
  settings.noise = 0.2;
  settings.silent = true;
  settings.pictures = {.cameras = {"side", "top"}, .height = 8, .width = 8};
  return settings;
}

/// All files below a folder with their bytes.
std::map<std::string, std::string> content(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  return files;
}

std::map<std::string, std::string> recorded(const fs::path& folder, const RecordingSettings& settings, int n_envs) {
  LineTask task(n_envs);
  LineExpert expert;
  record(task, expert, folder, settings);
  return content(folder);
}

/// An expert that gives up after so many calls: as a kill, but for the process.
class Quitter final : public tasks::Actor {
 public:
  explicit Quitter(int calls) : calls_(calls) {}
  std::string name() const override { return "expert"; }
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds, const std::string& t) override {
    expert_.begin(envs, seeds, t);
  }
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    if (--calls_ < 0) throw Error("the power is gone");
    expert_.act(task, envs, actions);
  }

 private:
  LineExpert expert_;
  int calls_;
};

TEST(Recording, HoldsTheFirstSuccessesByTheirSeedsAndCountsTheOthers) {
  const OwnFolder folder;
  LineTask task(6);
  LineExpert expert;
  const RecordingReport report = record(task, expert, folder.path(), small());
  EXPECT_EQ(report.path, folder.path() / "line" / "1.0.0");
  EXPECT_EQ(report.episodes, 20);
  EXPECT_EQ(report.successes, 20);
  EXPECT_EQ(report.faults, 0);
  const auto source = data::open_episodes(report.path, {.checksums = "always"});
  ASSERT_EQ(source->size(), 20);
  std::uint64_t expected = 40;
  std::int64_t steps = 0;
  for (std::int64_t e = 0; e < source->size(); ++e) {
    if (expected % 7 == 3) ++expected;  // these no action saves
    const auto episode = source->open(e);
    EXPECT_EQ(episode->metadata("episode_metadata/seed"), format("{}", expected)) << e;
    EXPECT_EQ(episode->metadata("episode_metadata/task"), "line");
    EXPECT_EQ(episode->metadata("episode_metadata/renderer"), "raycast");
    EXPECT_EQ(episode->metadata("episode_metadata/cameras"), "side,top");
    ++expected;
    steps += episode->steps();
  }
  EXPECT_EQ(steps, report.steps);
  EXPECT_EQ(source->element_names(task.spec().action.field), task.spec().action.names);
  EXPECT_EQ(source->element_names("observation/position"), std::vector<std::string>());
  EXPECT_EQ(report.attempts, static_cast<std::int64_t>(expected - 40)) << "nothing was run beyond the last";
  EXPECT_FALSE(fs::exists(folder.path() / "line" / "1.0.0.recording"));
}

TEST(Recording, AStepHoldsWhatWasSeenBeforeItsActionAndWhatCameOfIt) {
  const OwnFolder folder;
  LineTask task(3);
  LineExpert expert;
  RecordingSettings settings = small(5);
  settings.noise = 0;
  const auto source = data::open_episodes(record(task, expert, folder.path(), settings).path);
  for (std::int64_t e = 0; e < source->size(); ++e) {
    const auto episode = source->open(e);
    const auto steps = static_cast<std::size_t>(episode->steps());
    const auto read = [&](const char* name, std::size_t width) {
      std::vector<float> values(steps * width);
      episode->read(source->field_index(name), 0, episode->steps(), std::span(values));
      return values;
    };
    const auto x = read("observation/x", 1), clock = read("observation/clock", 2), action = read("action", 1),
               reward = read("reward", 1), discount = read("discount", 1), first = read("is_first", 1),
               last = read("is_last", 1), terminal = read("is_terminal", 1);
    std::string scratch;
    data::Image image;
    for (std::size_t t = 0; t < steps; ++t) {
      EXPECT_EQ(clock[2 * t], static_cast<float>(t));
      EXPECT_EQ(action[t], std::clamp(-5 * x[t], -1.0f, 1.0f));
      const float next = x[t] + 0.1f * action[t];
      EXPECT_EQ(reward[t], 1 - std::abs(next));
      if (t + 1 < steps) EXPECT_EQ(x[t + 1], next);
      const bool end = t + 1 == steps;
      EXPECT_EQ(discount[t], end ? 0 : 1);
      EXPECT_EQ(first[t], t == 0 ? 1 : 0);
      EXPECT_EQ(last[t], end ? 1 : 0);
      EXPECT_EQ(terminal[t], end ? 1 : 0);
      EXPECT_EQ(episode->text(source->field_index("language_instruction"), static_cast<std::int64_t>(t)),
                "come near zero");
      for (const auto& [field, blue] :
           {std::pair("observation/top_image", 7), std::pair("observation/side_image", 9)}) {
        data::decode_image(episode->image(source->field_index(field), static_cast<std::int64_t>(t), scratch).bytes, 3,
                           image);
        ASSERT_EQ(image.height, 8);
        EXPECT_EQ(image.pixels[0], static_cast<std::uint8_t>(128 + 100 * x[t]));
        EXPECT_EQ(image.pixels[1], t);
        EXPECT_EQ(image.pixels[2], blue);
      }
    }
  }
}

TEST(Recording, TheSameSeedsGiveTheSameBytesForAnyNumberOfEnvironmentsAndThreads) {
  const OwnFolder folder;
  const auto one = recorded(folder.path() / "a", small(), 1);
  EXPECT_GE(one.size(), 7u);
  RecordingSettings threads = small();
  threads.threads = 3;
  EXPECT_EQ(recorded(folder.path() / "b", threads, 5), one);
  EXPECT_EQ(recorded(folder.path() / "c", small(), 64), one);
  RecordingSettings other = small();
  other.noise_seed = 1;
  EXPECT_NE(recorded(folder.path() / "d", other, 5), one);
}

TEST(Recording, RanksWriteTheBytesOfASingleProcess) {
  const OwnFolder folder;
  const auto one = recorded(folder.path() / "one", small(), 4);
  constexpr int kRanks = 3;
  std::barrier meeting(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      RecordingSettings settings = small();
      settings.rank = rank;
      settings.world_size = kRanks;
      settings.barrier = [&meeting] { meeting.arrive_and_wait(); };
      LineTask task(2);
      LineExpert expert;
      const RecordingReport report = record(task, expert, folder.path() / "three", settings);
      EXPECT_EQ(report.episodes, 20) << rank;
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(content(folder.path() / "three"), one);
}

TEST(Recording, GoesOnWhereItWasInterruptedAndEndsWithTheSameBytes) {
  const OwnFolder folder;
  const auto whole = recorded(folder.path() / "whole", small(), 4);
  for (const int calls : {10, 25, 40}) {
    LineTask task(3);
    Quitter quitter(calls);
    EXPECT_NE(message_of([&] { record(task, quitter, folder.path() / "cut", small()); }).find("power"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(folder.path() / "cut" / "line" / "1.0.0"));
  }
  // What a kill in the middle of a write leaves.
  std::ofstream(folder.path() / "cut" / "line" / "1.0.0.recording" / "episodes-00000016-00000019.tfrecord") << "half";
  LineTask task(5);
  LineExpert expert;
  const RecordingReport report = record(task, expert, folder.path() / "cut", small());
  EXPECT_GE(report.resumed, 4);
  EXPECT_EQ(content(folder.path() / "cut"), whole);
}

TEST(Recording, AnotherRecordingDoesNotContinueAnUnfinishedOne) {
  const OwnFolder folder;
  LineTask task(3);
  Quitter quitter(20);
  LineExpert expert;
  message_of([&] { record(task, quitter, folder.path(), small()); });
  RecordingSettings other = small();
  other.noise = 0.1;
  const std::string message = message_of([&] { record(task, expert, folder.path(), other); });
  EXPECT_NE(message.find("its noise is 0.2, not 0.1"), std::string::npos) << message;
}

TEST(Recording, FailuresAreKeptWhereTheyAreAskedForAndSaySo) {
  const OwnFolder folder;
  LineTask task(4);
  LineExpert expert;
  RecordingSettings settings = small(10);
  settings.keep = "all";
  settings.pictures.cameras.clear();
  const RecordingReport report = record(task, expert, folder.path(), settings);
  EXPECT_EQ(report.attempts, 10);
  EXPECT_EQ(report.successes, 9) << "seed 45 is hopeless";
  const auto source = data::open_episodes(report.path);
  for (std::int64_t e = 0; e < source->size(); ++e) {
    const auto episode = source->open(e);
    std::vector<float> last(1), discount(1);
    episode->read(source->field_index("is_terminal"), episode->steps() - 1, 1, std::span(last));
    episode->read(source->field_index("discount"), episode->steps() - 1, 1, std::span(discount));
    const bool success =
        episode->metadata("episode_metadata/success") == "true" || episode->metadata("episode_metadata/success") == "1";
    EXPECT_EQ(success, (40 + e) % 7 != 3) << e;
    EXPECT_EQ(last[0], success ? 1 : 0) << "a cut is no end";
    EXPECT_EQ(discount[0], success ? 0 : 1);
  }
}

TEST(Recording, EpisodesWithAFaultAreCountedAndLeftOut) {
  const OwnFolder folder;
  LineTask task(4);
  LineExpert sick(1);
  RecordingSettings settings = small(6);
  settings.keep = "all";
  const RecordingReport report = record(task, sick, folder.path(), settings);
  EXPECT_EQ(report.episodes, 6);
  EXPECT_GE(report.faults, 3);
  EXPECT_EQ(report.attempts, report.episodes + report.faults);
}

TEST(Recording, RobomimicsLayoutHoldsTheSameNumbers) {
  const OwnFolder folder;
  LineTask task(4);
  LineExpert expert;
  RecordingSettings settings = small(6);
  const auto rlds = data::open_episodes(record(task, expert, folder.path(), settings).path);
  settings.format = "hdf5";
  const RecordingReport report = record(task, expert, folder.path(), settings);
  EXPECT_EQ(report.path, folder.path() / "line.hdf5");
  const auto hdf5 = data::open_episodes(report.path);
  ASSERT_EQ(hdf5->size(), 6);
  for (std::int64_t e = 0; e < 6; ++e) {
    const auto a = rlds->open(e), b = hdf5->open(e);
    ASSERT_EQ(a->steps(), b->steps());
    for (const auto& [left, right] : {std::pair("observation/x", "obs/x"), std::pair("action", "actions"),
                                      std::pair("reward", "rewards"), std::pair("is_terminal", "dones")}) {
      std::vector<float> p(static_cast<std::size_t>(a->steps())), q(p.size());
      a->read(rlds->field_index(left), 0, a->steps(), std::span(p));
      b->read(hdf5->field_index(right), 0, b->steps(), std::span(q));
      EXPECT_EQ(p, q) << left;
    }
    std::string scratch;
    const std::int64_t last = a->steps() - 1;
    const data::StoredImage image = b->image(hdf5->field_index("obs/top_image"), last, scratch);
    EXPECT_EQ(image.height, 8);
    EXPECT_EQ(static_cast<std::uint8_t>(image.bytes[1]), last) << "the clock";
  }
  EXPECT_NE(std::string(hdf5->open(0)->metadata("data/env_args")).find(R"("env_name":"line")"), std::string::npos)
      << hdf5->open(0)->metadata("data/env_args");
}

TEST(Recording, LeRobotsFormatHoldsTheSameNumbersAndPictures) {
  if (const std::string why = data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why;
  const OwnFolder folder;
  LineTask task(4);
  LineExpert expert;
  RecordingSettings settings = small(6);
  const auto rlds = data::open_episodes(record(task, expert, folder.path() / "a", settings).path);
  settings.format = "lerobot";
  settings.images = "image";
  const RecordingReport report = record(task, expert, folder.path() / "b", settings);
  EXPECT_EQ(report.path, folder.path() / "b" / "line");
  EXPECT_FALSE(fs::exists(folder.path() / "b" / "line.recording"));
  const auto lerobot = data::open_episodes(report.path);
  ASSERT_EQ(lerobot->size(), 6);
  EXPECT_EQ(lerobot->open(0)->metadata("fps"), format("{:g}", 1 / task.spec().control_period));
  for (std::int64_t e = 0; e < 6; ++e) {
    const auto a = rlds->open(e), b = lerobot->open(e);
    ASSERT_EQ(a->steps(), b->steps());
    const auto numbers = [](const data::EpisodeSource& source, const data::Episode& episode, const char* name) {
      const std::size_t field = source.field_index(name);
      std::vector<float> values(static_cast<std::size_t>(episode.steps() * source.fields()[field].elements()));
      episode.read(field, 0, episode.steps(), std::span(values));
      return values;
    };
    for (const auto& [left, right] :
         {std::pair("observation/clock", "observation.clock"), std::pair("action", "action"),
          std::pair("reward", "next.reward"), std::pair("is_terminal", "next.done")})
      EXPECT_EQ(numbers(*rlds, *a, left), numbers(*lerobot, *b, right)) << left;
    const auto state = numbers(*lerobot, *b, "observation.state"), x = numbers(*rlds, *a, "observation/x"),
               clock = numbers(*rlds, *a, "observation/clock"), success = numbers(*lerobot, *b, "next.success");
    for (std::size_t t = 0; t < x.size(); ++t) {
      EXPECT_EQ(state[3 * t], x[t]) << "the task's observations one behind the other";
      EXPECT_EQ(state[3 * t + 2], clock[2 * t + 1]);
      EXPECT_EQ(success[t], t + 1 == x.size() ? 1 : 0);
    }
    std::string left, right;
    for (std::int64_t t = 0; t < a->steps(); ++t)
      EXPECT_EQ(a->image(rlds->field_index("observation/top_image"), t, left).bytes,
                b->image(lerobot->field_index("observation.images.top"), t, right).bytes);
    EXPECT_EQ(b->text(lerobot->field_index("task"), 0), "come near zero");
    EXPECT_EQ(b->metadata("seed"), a->metadata("episode_metadata/seed"));
  }
}

TEST(Recording, LeRobotsStateHoldsNothingPrivilegedUnlessItIsNamed) {
  if (const std::string why = data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why;
  const OwnFolder folder;
  class Secret final : public LineTask {
   public:
    Secret() : LineTask(4), told_(LineTask::spec()) { told_.observations[0].privileged = true; }
    const tasks::TaskSpec& spec() const override { return told_; }

   private:
    tasks::TaskSpec told_;
  } task;
  LineExpert expert;
  RecordingSettings settings = small(4);
  settings.format = "lerobot";
  settings.images = "image";
  const RecordingReport report = record(task, expert, folder.path() / "a", settings);
  EXPECT_NE(join(report.said, "; ").find("x is not in it, which no robot measures: --state clock,x puts x in"),
            std::string::npos)
      << join(report.said, "; ");
  const auto elements = [](const fs::path& path, const char* field) {
    const auto source = data::open_episodes(path);
    return dynamic_cast<const data::LeRobotEpisodes&>(*source).element_names(field);
  };
  EXPECT_EQ(elements(report.path, "observation.state"), (std::vector<std::string>{"clock.0", "clock.1"}));
  EXPECT_EQ(elements(report.path, "action"), std::vector<std::string>{"speed"});
  EXPECT_EQ(data::open_episodes(report.path)->open(0)->metadata("privileged"), "x");
  settings.state = {"x", "clock"};
  EXPECT_EQ(elements(record(task, expert, folder.path() / "b", settings).path, "observation.state"),
            (std::vector<std::string>{"x", "clock.0", "clock.1"}));
  settings.state = {"clok"};
  EXPECT_NE(message_of([&] { record(task, expert, folder.path() / "c", settings); }).find("did you mean 'clock'?"),
            std::string::npos);
  settings.format = "rlds";
  EXPECT_NE(message_of([&] { record(task, expert, folder.path() / "c", settings); }).find("--format lerobot"),
            std::string::npos);
}

TEST(Recording, LeRobotsFormatGoesOnWhereItWasInterruptedAndEndsWithTheSameBytes) {
  if (const std::string why = data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why;
  if (const std::string why = data::video_frames_unavailable(); !why.empty()) GTEST_SKIP() << why;
  const OwnFolder folder;
  RecordingSettings settings = small(8);
  settings.format = "lerobot";
  const auto whole = recorded(folder.path() / "whole", settings, 1);
  EXPECT_TRUE(whole.contains("line/videos/observation.images.top/chunk-000/file-000.mp4"));
  EXPECT_TRUE(whole.contains("line/meta/info.json"));
  LineTask task(3);
  {
    Quitter quitter(30);
    EXPECT_THROW(record(task, quitter, folder.path() / "cut", settings), Error);
  }
  EXPECT_FALSE(fs::exists(folder.path() / "cut" / "line"));
  EXPECT_EQ(recorded(folder.path() / "cut", settings, 5), whole);
  // What would fail at the end is refused before an episode.
  Quitter never(0);
  settings.pictures.height = 7;
  EXPECT_NE(message_of([&] { record(task, never, folder.path() / "odd", settings); }).find("--images image"),
            std::string::npos);
  settings.images = "gif";
  EXPECT_NE(message_of([&] { record(task, never, folder.path() / "odd", settings); }).find("video or image, not 'gif'"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder.path() / "odd"));
}

TEST(Recording, WhatCannotBeRecordedIsSaidAndLeavesNothing) {
  const OwnFolder folder;
  LineTask task(4);
  LineExpert expert;
  const auto expect_refused = [&](const char* text, const std::function<void(RecordingSettings&)>& change) {
    RecordingSettings settings = small(4);
    change(settings);
    const std::string message = message_of([&] { record(task, expert, folder.path() / "out", settings); });
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_FALSE(fs::exists(folder.path() / "out")) << text;
  };
  expect_refused("0 episodes", [](auto& s) { s.episodes = 0; });
  expect_refused("no camera 'tops', did you mean 'top'?", [](auto& s) { s.pictures.cameras = {"tops"}; });
  expect_refused("no format", [](auto& s) { s.format = "csv"; });
  expect_refused("neither success nor all", [](auto& s) { s.keep = "some"; });
  expect_refused("small letters", [](auto& s) { s.name = "Line"; });
  expect_refused("png or jpeg", [](auto& s) { s.pictures.encoding = "gif"; });
  expect_refused("ends its episodes after 40 steps", [](auto& s) { s.max_steps = 41; });
}

TEST(Recording, AnActorThatHardlyEverSucceedsEndsWithAnError) {
  const OwnFolder folder;
  LineTask task(4);
  LineExpert expert;
  RecordingSettings settings = small(8);
  settings.max_steps = 1;
  const std::string message = message_of([&] { record(task, expert, folder.path(), settings); });
  EXPECT_NE(message.find("--keep all"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(folder.path() / "line" / "1.0.0"));
  EXPECT_FALSE(fs::exists(folder.path() / "line" / "1.0.0.recording"));
}

TEST(Recording, ADestinationThatIsThereOrCannotBeWrittenIsRefusedBeforeAnEpisode) {
  const OwnFolder folder;
  LineTask task(4);
  Quitter never(0);
  std::ofstream(folder.path() / "file") << "no folder";
  EXPECT_NE(message_of([&] { record(task, never, folder.path() / "file", small()); }).find("cannot create"),
            std::string::npos);
  fs::create_directories(folder.path() / "line" / "1.0.0");
  EXPECT_NE(message_of([&] { record(task, never, folder.path(), small()); }).find("exists already"), std::string::npos);
}

TEST(Recording, AFullDiskIsAnErrorAfterWhichTheRecordingGoesOn) {
  const OwnFolder folder;
  const auto whole = recorded(folder.path() / "whole", small(), 4);
  LineTask task(4);
  LineExpert expert;
  {
    const test::FileSizeLimit limit(2000);
    const std::string message = message_of([&] { record(task, expert, folder.path() / "full", small()); });
    EXPECT_NE(message.find("cannot write"), std::string::npos) << message;
  }
  EXPECT_FALSE(fs::exists(folder.path() / "full" / "line" / "1.0.0"));
  record(task, expert, folder.path() / "full", small());
  EXPECT_EQ(content(folder.path() / "full"), whole);
}

TEST(Replay, FromARecordedStartItPlaysTheRecordedActions) {
  const OwnFolder folder;
  LineTask task(4);
  LineExpert expert;
  RecordingSettings settings = small(12);
  settings.noise = 0;
  const auto source = data::open_episodes(record(task, expert, folder.path(), settings).path);
  const auto replay = make_replay_actor(*source, task.spec(), 40);
  std::vector<std::uint64_t> seeds;
  for (std::int64_t e = 0; e < source->size(); ++e)
    seeds.push_back(std::stoull(std::string(source->open(e)->metadata("episode_metadata/seed"))));
  const auto again = tasks::run_episodes(task, *replay, seeds);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    EXPECT_TRUE(again[i].success);
    EXPECT_EQ(again[i].steps, source->steps(static_cast<std::int64_t>(i)));
  }
  EXPECT_THROW(make_replay_actor(*source, task.spec(), 0), Error);
}

TEST(Replay, OtherDataAreRefusedByName) {
  const auto source = data::open_episodes(data::fixture("arm"));
  const LineTask task(1);
  const std::string message = message_of([&] { make_replay_actor(*source, task.spec()); });
  EXPECT_NE(message.find("has no observation x, as observation/x, obs/x or observation.x"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace cohort::record
