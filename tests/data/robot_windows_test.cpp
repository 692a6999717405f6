// Windows, mixing, statistics and batches of robot data.
#include "data/robot_windows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "data/allocation_count.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/loader.h"
#include "data/open_episodes.h"
#include "data/rlds/rlds_episodes.h"
#include "data/sample_memory.h"
#include "data/sampler.h"
#include "data/toy_set.h"
#include "data/transforms/filter.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

RobotDataSettings arm_settings() {
  RobotDataSettings settings;
  settings.paths = {fixture("arm").string()};
  settings.actions = {"action"};
  settings.action_normalization = {"none"};
  settings.proprio = {"observation/pose", "observation/gripper"};
  settings.images = {"observation/image", "observation/wrist"};
  settings.image_transforms = {"resize(8, 8)"};
  settings.action_steps = 4;
  settings.statistics_cache = "never";
  settings.threads = 2;
  return settings;
}

TEST(RobotWindows, AWindowHoldsWhatTheReferencesChunkingHolds) {
  // octo, chunk_act_obs: observations at max(t - 1, 0) and t; actions at min(t + k, last); masks say which are real.
  const RobotWindows windows(arm_settings());
  const RldsEpisodes episodes(fixture("arm"));
  const std::size_t action = episodes.field_index("action"), pose = episodes.field_index("observation/pose");
  std::int64_t index = 0;
  for (std::int64_t e = 0; e < episodes.size(); ++e)
    for (std::int64_t t = 0; t < episodes.steps(e); ++t, ++index) {
      const Sample sample(windows, index, 0);
      EXPECT_EQ(windows.address(index, 0), (WindowAddress{0, e, t}));
      const auto episode = episodes.open(e);
      for (std::int64_t k = 0; k < 4; ++k) {
        const std::int64_t at = std::min(t + k, episodes.steps(e) - 1);
        float expected[7];
        episode->read(action, at, 1, expected);
        EXPECT_TRUE(std::equal(expected, expected + 7, sample.floats("action").begin() + k * 7));
        EXPECT_EQ(sample.mask("action_mask")[static_cast<std::size_t>(k)], t + k < episodes.steps(e));
      }
      for (std::int64_t k = 0; k < 2; ++k) {
        float expected[6];
        episode->read(pose, std::max<std::int64_t>(t - 1 + k, 0), 1, expected);
        EXPECT_TRUE(std::equal(expected, expected + 6, sample.floats("proprio").begin() + k * 7));
      }
      EXPECT_EQ(sample.mask("observation_mask"), (std::vector<bool>{t > 0, true}));
      const auto& frames = sample.memory[sample.field("image/observation/image")];
      if (t == 0) {
        EXPECT_TRUE(std::equal(frames.begin(), frames.begin() + 192, frames.begin() + 192));
      }
      EXPECT_NE(frames, std::vector<std::byte>(384, std::byte{0xAA}));
    }
  EXPECT_EQ(windows.size(), index);
}

TEST(RobotWindows, PaddingRulesAndSubSampling) {
  RobotDataSettings settings = arm_settings();
  settings.images.clear();
  settings.pad_before = settings.pad_after = "drop";
  settings.stride = 2;
  settings.action_steps = 2;
  const RobotWindows dropped(settings);  // t from 2 on, t + 2 at most the last step: steps - 4 windows
  std::int64_t expected = 0;
  for (std::int64_t e = 0; e < dropped.source(0).size(); ++e)
    expected += std::max<std::int64_t>(0, dropped.source(0).steps(e) - 4);
  EXPECT_EQ(dropped.size(), expected);
  for (std::int64_t i = 0; i < dropped.size(); ++i) {
    const Sample sample(dropped, i, 0);
    EXPECT_EQ(sample.mask("action_mask"), (std::vector<bool>{true, true}));
    EXPECT_EQ(sample.mask("observation_mask"), (std::vector<bool>{true, true}));
    float action[7];
    const WindowAddress at = dropped.address(i, 0);
    const auto episode = dropped.source(0).open(at.episode);
    episode->read(dropped.source(0).field_index("action"), at.step + 2, 1, action);
    EXPECT_TRUE(std::equal(action, action + 7, sample.floats("action").begin() + 7));
  }
  settings = arm_settings();
  settings.pad_after = "zero";
  const RobotWindows zero(settings);
  const Sample last(zero, zero.source(0).steps(0) - 1, 0);
  for (std::size_t i = 7; i < 28; ++i) EXPECT_EQ(last.floats("action")[i], 0.0f);
  settings.pad_before = "drop";
  settings.observation_steps = 50;
  EXPECT_ERROR(RobotWindows{settings}, "no episode is long enough for a window of 50 observations and 4 actions");
}

TEST(RobotWindows, GoalsLieAheadAndEndTheActions) {
  RobotDataSettings settings = arm_settings();
  settings.goal = "uniform";
  const RobotWindows windows(settings);
  const std::size_t pose = windows.source(0).field_index("observation/pose");
  std::set<std::int64_t> goals;
  for (std::uint64_t epoch = 0; epoch < 30; ++epoch) {
    const Sample sample(windows, 0, epoch);
    const auto episode = windows.source(0).open(0);
    for (std::int64_t t = 0; t < episode->steps(); ++t) {
      float at[6];
      episode->read(pose, t, 1, at);
      if (std::equal(at, at + 6, sample.floats("goal_proprio").begin())) goals.insert(t);
    }
  }
  EXPECT_EQ(*goals.begin(), 1);
  EXPECT_EQ(*goals.rbegin(), windows.source(0).steps(0) - 1);
  settings.goal = "steps(1)";
  const RobotWindows near(settings);
  EXPECT_EQ(Sample(near, 0, 0).mask("action_mask"), (std::vector<bool>{true, true, false, false}));
  settings.goal = "mean";
  EXPECT_ERROR(RobotWindows{settings}, "unknown goal 'mean'");
}

TEST(RobotWindows, AnEpochIsAFunctionOfSeedAndEpochAndMixesByWeight) {
  RobotDataSettings settings = arm_settings();
  settings.images.clear();
  settings.paths = {fixture("arm").string(), fixture("arm").string()};
  settings.splits = {"train[:2]", "train[2:]"};
  settings.weights = {3, 1};
  settings.samples_per_epoch = 40;
  const RobotWindows windows(settings), again(settings);
  const std::int64_t first_windows = windows.source(0).steps(0) + windows.source(0).steps(1);
  std::map<std::size_t, int> from;
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
    for (std::int64_t i = 0; i < 40; ++i) {
      const WindowAddress at = windows.address(i, epoch);
      EXPECT_EQ(at, again.address(i, epoch));
      ++from[at.set];
      if (at.set == 0) ++seen[{at.episode, at.step}];
    }
  EXPECT_EQ(from[0], 150);
  EXPECT_EQ(from[1], 50);
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), first_windows);
  for (const auto& [window, times] : seen) {  // 150 draws in whole passes: none is drawn twice more often than another
    EXPECT_GE(times, 150 / first_windows);
    EXPECT_LE(times, 150 / first_windows + 1);
  }
  settings.seed = 1;
  const RobotWindows other(settings);
  int equal = 0;
  for (std::int64_t i = 0; i < 40; ++i) equal += windows.address(i, 0) == other.address(i, 0);
  EXPECT_LT(equal, 20);
}

TEST(RobotWindows, SomeWindowsPerEpisodeAreDrawnAnewInEveryEpoch) {
  RobotDataSettings settings = arm_settings();
  settings.images.clear();
  settings.windows_per_episode = 3;
  const RobotWindows windows(settings);
  std::int64_t expected = 0;
  for (std::int64_t e = 0; e < windows.source(0).size(); ++e)
    expected += std::min<std::int64_t>(3, windows.source(0).steps(e));
  ASSERT_EQ(windows.size(), expected);
  std::set<std::vector<std::int64_t>> draws;
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    std::map<std::int64_t, std::set<std::int64_t>> steps;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      const WindowAddress at = windows.address(i, epoch);
      EXPECT_TRUE(steps[at.episode].insert(at.step).second) << "without replacement";
      all.push_back(at.step);
    }
    draws.insert(all);
  }
  EXPECT_GT(draws.size(), 4u);
}

TEST(RobotWindows, TwoRanksShareAnEpochWithoutOverlapAndResumeAtTheNextSample) {
  const RobotWindows windows(arm_settings());
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  std::int64_t padded = 0;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const DistributedSampler sampler(windows.size(), {.world_size = 2, .rank = rank, .seed = 5});
    const EpochShare whole = sampler.share(3);
    padded += whole.padded;
    for (const std::int64_t index : whole.indices) {
      const WindowAddress at = windows.address(index, 3);
      seen.insert({at.episode, at.step});
    }
    const EpochShare rest = sampler.share(3, 8);
    EXPECT_TRUE(std::equal(rest.indices.begin(), rest.indices.end() - rest.padded, whole.indices.begin() + 4));
  }
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), windows.size());
  EXPECT_LE(padded, 1);
}

TEST(RobotWindows, EpisodesThatThreadsReadAtTheSameTimeFitIntoTheBudget) {
  RobotDataSettings settings = arm_settings();
  std::int64_t largest = 0, all = 0;
  {
    const RldsEpisodes episodes(fixture("arm"));
    for (std::int64_t e = 0; e < episodes.size(); ++e) {
      largest = std::max(largest, episodes.bytes_when_open(e, {}));
      all += episodes.bytes_when_open(e, {});
    }
  }
  settings.cache_bytes = largest + largest / 4;
  ASSERT_GT(all, 2 * settings.cache_bytes) << "else nothing has to wait";
  const RobotWindows windows(settings);
  // Without any opened episode: of what was opened to look at it, nothing is kept.
  RobotDataSettings bare = settings;
  bare.cache_bytes = 1;
  const std::int64_t tables = RobotWindows(bare).bytes_held();
  EXPECT_LT(tables, largest / 4) << "else the bound below allows an episode more";
  std::atomic<std::int64_t> most{0};
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 30 * windows.size(); ++i) {
        const Sample sample(windows, (i * 7 + t * 11) % windows.size(), 0);
        const std::int64_t now = windows.bytes_held();
        for (std::int64_t known = most; now > known && !most.compare_exchange_weak(known, now);) {
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, tables + settings.cache_bytes);
}

TEST(RobotWindows, BatchesAreEqualForAnyNumberOfWorkersAndTheSteadyStateAllocatesNothing) {
  RobotDataSettings settings = arm_settings();
  settings.image_transforms = {"resize(10, 10)", "crop(8, 8)", "brightness(0.2)", "hue(0.1)"};
  const auto windows = std::make_shared<RobotWindows>(settings);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < windows->size() * 8; ++i) indices.push_back(i * 7 % windows->size());
  std::vector<std::vector<std::byte>> reference;
  for (const int workers : {0, 1, 3}) {
    Loader loader(windows, {.batch_size = 5, .workers = workers, .memory_budget_bytes = 1 << 20});
    EXPECT_LE(loader.statistics().bytes_held, 1 << 20);
    loader.start_epoch(2, indices, indices);
    std::size_t b = 0;
    std::int64_t before = 0, after = 0;
    const auto batches = static_cast<std::size_t>(loader.batches_per_epoch());
    while (LoadedBatch batch = loader.next()) {
      std::vector<std::byte> bytes;
      if (workers != 0) {
        for (const ArrayView& field : batch.fields()) {
          const auto* data = static_cast<const std::byte*>(field.data);
          bytes.insert(bytes.end(), data, data + field.bytes());
        }
        if (workers == 1)
          reference.push_back(std::move(bytes));
        else
          EXPECT_EQ(bytes, reference[b]);
      } else {
        if (b == batches / 2) before = allocation_count();
        if (b == batches - 2) after = allocation_count();
      }
      ++b;
    }
    if (workers == 0) {
      EXPECT_EQ(before, after);
    }
  }
}

TEST(RobotWindows, InstructionsAreNumbered) {
  RobotDataSettings settings = arm_settings();
  settings.images.clear();
  settings.instruction = "language_instruction";
  EXPECT_ERROR(RobotWindows{settings}, "its language_instruction is empty, and a policy that follows instructions");
  settings.filters = {"labeled(language_instruction)"};
  const RobotWindows windows(settings);
  EXPECT_EQ(windows.instructions().size(), 2u);
  for (std::int64_t i = 0; i < windows.size(); ++i) {
    const WindowAddress at = windows.address(i, 0);
    const Sample sample(windows, i, 0);
    const auto id = sample.rows[sample.field("instruction")].span<std::int64_t>()[0];
    EXPECT_EQ(windows.instructions()[static_cast<std::size_t>(id)],
              windows.source(0).open(at.episode)->text(windows.source(0).field_index("language_instruction"), 0));
  }
}

TEST(RobotWindows, HdfFilesGiveTheSameKindOfSamples) {
  RobotDataSettings settings;
  settings.paths = {fixture("libero.hdf5").string()};
  settings.actions = {"actions"};
  settings.proprio = {"obs/ee_pos", "obs/ee_ori | axis_angle->rotation_6d", "obs/gripper_states"};
  settings.images = {"obs/agentview_rgb", "obs/eye_in_hand_rgb"};
  settings.image_transforms = {"flip_vertical", "resize(8, 8)"};
  settings.instruction = "language_instruction";
  settings.statistics_cache = "never";
  const RobotWindows windows(settings);
  EXPECT_EQ(windows.size(), 10);
  const Sample sample(windows, 4, 0);
  EXPECT_EQ(sample.specs[sample.field("proprio")].sample_shape, (std::vector<std::int64_t>{2, 11}));
  std::string scratch;
  const auto episode = windows.source(0).open(1);
  const StoredImage raw = episode->image(windows.source(0).field_index("obs/agentview_rgb"), 0, scratch);
  const auto& frames = sample.memory[sample.field("image/obs/agentview_rgb")];
  for (std::size_t i = 0; i < 24; ++i)  // first row of the second frame = last row of the file's frame
    EXPECT_EQ(static_cast<char>(frames[192 + i]), raw.bytes[168 + i]);
  EXPECT_EQ(windows.instructions(), std::vector<std::string>{"put the bowl on the plate"});
}

TEST(RobotStatistics, EqualNumpysAndComeFromTheCacheTheSecondTime) {
  const nlohmann::json expected = fixture_json("transform_expected.json").at("statistics");
  const auto values = expected["values"].get<std::vector<float>>();
  // One data set whose actions are the fixture's values, cut into episodes of different lengths.
  OwnFolder folder;
  fs::create_directories(folder.path() / "toy/1.0.0");
  std::string shard;
  std::vector<std::int64_t> lengths;
  for (std::size_t at = 0, n = 1; at < 101; at += n, n = std::min<std::size_t>(101 - at, n + 3)) {
    ExampleWriter writer;
    writer.add("steps/action", std::span(values.data() + 3 * at, 3 * n));
    append_tfrecord(shard, writer.finish());
    lengths.push_back(static_cast<std::int64_t>(n));
  }
  std::ofstream(folder.path() / "toy/1.0.0/toy-train.tfrecord-00000-of-00001", std::ios::binary) << shard;
  write_file_atomically(
      folder.path() / "toy/1.0.0/features.json",
      write_features(make_dict({{"steps", make_steps(make_dict({{"action", make_tensor("float32", {3})}}))}})));
  DatasetInfo info{.name = "toy", .version = "1.0.0"};
  info.splits.push_back({.name = "train", .shard_lengths = {static_cast<std::int64_t>(lengths.size())}});
  write_file_atomically(folder.path() / "toy/1.0.0/dataset_info.json", write_dataset_info(info));
  const RldsEpisodes episodes(folder.path() / "toy");
  std::vector<std::int64_t> all(lengths.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const ComponentVector action({"action"}, episodes, "actions"), none({}, episodes, "proprio");
  constexpr double kTolerance = 1e-12;  // float64 sums in another order
  for (const int threads : {1, 3}) {
    const RobotStatistics s =
        compute_statistics(episodes, all, action, none, folder.path(), {.threads = threads, .cache = "never"});
    EXPECT_EQ(s.transitions, 101);
    EXPECT_EQ(s.trajectories, static_cast<std::int64_t>(lengths.size()));
    for (std::size_t d = 0; d < 3; ++d) {
      EXPECT_NEAR(s.action.mean[d], expected["mean"][d].get<double>(), kTolerance);
      EXPECT_NEAR(s.action.std[d], expected["std"][d].get<double>(), kTolerance);
      EXPECT_EQ(s.action.min[d], expected["min"][d].get<double>());
      EXPECT_EQ(s.action.max[d], expected["max"][d].get<double>());
      EXPECT_NEAR(s.action.q01[d], expected["q01"][d].get<double>(), kTolerance);
      EXPECT_NEAR(s.action.q99[d], expected["q99"][d].get<double>(), kTolerance);
    }
  }
  const fs::path cache = folder.path() / "cache";
  const RobotStatistics first =
      compute_statistics(episodes, all, action, none, folder.path(), {.cache = cache.string()});
  const fs::path file = cache / ("dataset_statistics_" + first.hash + ".json");
  ASSERT_TRUE(fs::exists(file));
  auto changed = parse_json<nlohmann::ordered_json>(read_file(file));
  changed["action"]["mean"][0] = 123.0;
  write_file_atomically(file, json_text(changed));
  EXPECT_EQ(compute_statistics(episodes, all, action, none, folder.path(), {.cache = cache.string()}).action.mean[0],
            123.0)
      << "the cache is used";
  all.pop_back();
  EXPECT_NE(compute_statistics(episodes, all, action, none, folder.path(), {.cache = cache.string()}).action.mean[0],
            123.0)
      << "but not for other episodes";
}

TEST(RobotWindows, ValuesThatAreNotFiniteAreNamedThoughStatisticsAreGiven) {
  // As for validation, which takes the statistics of the training data.
  OwnFolder folder;
  std::vector<ToyEpisode> sound(2);
  for (ToyEpisode& episode : sound) episode.fields["action"] = {0, 1, 2, 3};
  std::vector<ToyEpisode> faulty = sound;
  faulty[1].fields["action"][2] = std::numeric_limits<float>::quiet_NaN();
  RobotDataSettings settings;
  settings.actions = {"action"};
  settings.statistics_cache = "never";
  settings.threads = 1;
  settings.paths = {write_toy_set(folder.path() / "sound", sound, {{"action", 1}}).string()};
  const RobotWindows train(settings);
  settings.given_statistics = {train.statistics(0)};
  RobotWindows(settings).size();
  settings.paths = {write_toy_set(folder.path() / "faulty", faulty, {{"action", 1}}).string()};
  EXPECT_ERROR(RobotWindows{settings}, "the field action holds nan in step 2");
  const fs::path file = folder.path() / "statistics.json";
  write_file_atomically(file, json_text(to_json(train.statistics(0))));
  settings.given_statistics.clear();
  settings.statistics = file.string();
  EXPECT_ERROR(RobotWindows{settings}, "leave such episodes out with the filter finite(action)");
  settings.filters = {"finite(action)"};
  EXPECT_EQ(RobotWindows(settings).size(), 4);
}

TEST(RobotStatistics, WhatWasSaidOfTheDataIsSaidAgainFromTheCache) {
  OwnFolder folder;
  std::vector<ToyEpisode> episodes(1);
  for (int t = 0; t < 200; ++t)
    episodes[0].fields["action"].push_back(t % 40 == 7 ? -9999.0f : std::sin(0.37f * static_cast<float>(t)));
  const fs::path home = write_toy_set(folder.path(), episodes, {{"action", 1}});
  const RldsEpisodes source(home);
  const ComponentVector action({"action"}, source, "actions"), none({}, source, "proprio");
  const std::string cache = (folder.path() / "cache").string();
  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    compute_statistics(source, {0}, action, none, home, {.cache = cache});
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string first = said();
  EXPECT_NE(first.find("element 0 of the actions is -9999 in 5 of 200 steps looked at"), std::string::npos) << first;
  EXPECT_NE(said().find("is -9999 in 5 of 200 steps looked at"), std::string::npos);
}

TEST(RobotWindows, QuantilesFromEveryKthStepAreKeptApart) {
  OwnFolder folder;
  std::vector<ToyEpisode> episodes(1);
  for (int t = 0; t < 100; ++t) episodes[0].fields["action"].push_back(static_cast<float>(t % 2 == 0 ? 0 : t));
  const fs::path home = write_toy_set(folder.path(), episodes, {{"action", 1}});
  const RldsEpisodes source(home);
  const ComponentVector action({"action"}, source, "actions"), none({}, source, "proprio");
  const std::string cache = (folder.path() / "cache").string();
  const auto statistics = [&](std::int64_t bytes) {
    return compute_statistics(source, {0}, action, none, home, {.quantile_bytes = bytes, .cache = cache});
  };
  const RobotStatistics all = statistics(400), half = statistics(200);
  EXPECT_GT(all.action.q99[0], 90);
  EXPECT_EQ(half.action.q99[0], 0) << "every second step";
  EXPECT_EQ(half.action.max[0], 99);
  EXPECT_EQ(statistics(400).action.q99[0], all.action.q99[0]) << "from its own file";
}

TEST(RobotWindows, BadInputIsNamedBeforeTrainingStarts) {
  const auto with = [](const auto& change) {
    RobotDataSettings settings = arm_settings();
    change(settings);
    return message_of([&] { RobotWindows windows(settings); });
  };
  using S = RobotDataSettings&;
  const std::vector<std::pair<std::string, std::string>> messages{
      {with([](S s) { s.images = {"observation/varied_camera_1_left"}; }),
       "has no field 'observation/varied_camera_1_left'"},
      {with([](S s) { s.images = {"observation/pose"}; }), "the field observation/pose of"},
      {with([](S s) { s.action_width = 10; }), "has 7 elements, but action_width says 10"},
      {with([](S s) { s.filters = {"metadata_contains(episode_metadata/file_path, /nowhere/)"}; }),
       "no episode of the 5"},
      {with([](S s) { s.filters = {"metadata_contains(file, x)"}; }), "has no metadata 'file'; it has"},
      {with([](S s) {
         s.weights = {1, 2};
       }),
       "2 weights for 1 data sets"},
      {with([](S s) { s.paths = {"/nowhere"}; }), "there is no file or folder /nowhere"},
      {with([](S s) { s.actions.clear(); }), "no action is named"},
      {with([](S s) { s.proprio = {"touched"}; }), "another size in every step"},
      {with([](S s) {
         s.splits = {"train[:2]", "train"};
       }),
       "2 splits for 1 data sets"},
  };
  for (const auto& [message, part] : messages)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\n" << part;
}

TEST(RobotWindows, FieldsThatHoldNoSingleTextOrFrameOfBytesAreRefusedByName) {
  const auto with = [](const auto& change) {
    RobotDataSettings settings = arm_settings();
    settings.paths = {fixture("corners").string()};
    settings.proprio.clear();
    settings.images = {"view"};
    settings.instruction = "language_instruction";
    change(settings);
    return message_of([&] { RobotWindows windows(settings); });
  };
  using S = RobotDataSettings&;
  EXPECT_EQ(with([](S) {}), "");
  const std::vector<std::pair<std::string, std::string>> messages{
      {with([](S s) { s.images = {"views"}; }), "images: the field views of"},
      {with([](S s) { s.images = {"views"}; }), "holds a sequence in every step"},
      {with([](S s) { s.images = {"depth"}; }), "has pixels of uint16, not uint8"},
      {with([](S s) { s.images = {"metres"}; }), "has pixels of float32, not uint8"},
      {with([](S s) { s.instruction = "words"; }), "instruction: the field words of corners holds a sequence"},
      {with([](S s) { s.instruction = "pair"; }), "holds 2 texts in a step"},
      {with([](S s) { s.instruction = "stamp"; }), "instruction: the field stamp of corners holds no texts"},
      {with([](S s) { s.filters = {"labeled(words)"}; }), "filter 'labeled(words)': words holds a sequence"},
  };
  for (const auto& [message, part] : messages)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\n" << part;
}

TEST(RobotWindows, ARuleMayHoldForOneSetOnly) {
  RobotDataSettings settings = arm_settings();
  settings.paths = {fixture("arm").string(), fixture("arm").string()};
  settings.images.clear();
  settings.filters = {"1: metadata_contains(episode_metadata/file_path, /success/)", "min_steps(3)"};
  const RobotWindows windows(settings);
  const auto episodes_of = [&](std::size_t set) {
    std::set<std::int64_t> episodes;
    for (std::int64_t i = 0; i < windows.size(); ++i)
      if (const WindowAddress at = windows.address(i, 0); at.set == set) episodes.insert(at.episode);
    return episodes;
  };
  const auto expect = [&](std::size_t set, const std::vector<std::string>& rules) {
    const auto kept = filter_episodes(windows.source(set), rules, 1);
    EXPECT_EQ(episodes_of(set), std::set<std::int64_t>(kept.begin(), kept.end()));
  };
  expect(0, {"min_steps(3)"});
  expect(1, {"metadata_contains(episode_metadata/file_path, /success/)", "min_steps(3)"});
  EXPECT_EQ(episodes_of(0).size(), episodes_of(1).size() + 1) << "one long episode of the set failed";
  settings.filters = {"2: min_steps(3)"};
  EXPECT_ERROR(RobotWindows{settings}, "filter '2: min_steps(3)' is for set 2, but there are 2, counted from 0");
}

TEST(RobotWindows, TheDroidFilterKeepsSuccessesOnly) {
  const RldsEpisodes episodes(fixture("arm"));
  const auto kept = filter_episodes(episodes, {"metadata_contains(episode_metadata/file_path, /success/)"}, 2);
  EXPECT_EQ(kept.size(), 4u);
  for (const std::int64_t e : kept)
    EXPECT_NE(episodes.open(e)->metadata("episode_metadata/file_path").find("/success/"), std::string::npos);
  EXPECT_EQ(filter_episodes(episodes, {"min_steps(4)", "labeled(language_instruction)"}, 1).size(), 2u);
  EXPECT_EQ(
      filter_episodes(episodes, {"max_abs(action, 100)", "finite(action)", "moves(observation/pose, 1e-6)"}, 1).size(),
      5u);
}

}  // namespace
}  // namespace cohort::data
