// Demonstrations of Push-T read back from the data set: whole episodes of the planner, seconds each.
#include "record/push_t_demonstrations.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/fixture_folder.h"
#include "data/open_episodes.h"
#include "data/rlds/rlds_episodes.h"
#include "record/push_t_fields.h"
#include "record/push_t_replay.h"
#include "tasks/push_t.h"

namespace cohort::record {
namespace {
using data::OwnFolder;

constexpr std::uint32_t kSeed = 100000;
constexpr std::int64_t kEpisodes = 2;

PushTDemonstrationSettings small_settings() {
  PushTDemonstrationSettings settings;
  settings.episodes = kEpisodes;
  settings.first_seed = kSeed;
  settings.threads = 2;
  settings.expert.beam = 3;
  settings.expert.spacing = 16;
  return settings;
}

std::vector<double> read(const data::EpisodeSource& source, const data::Episode& episode, const char* name) {
  const std::size_t field = source.field_index(name);
  std::vector<double> values(static_cast<std::size_t>(episode.steps() * source.fields()[field].elements()));
  episode.read(field, 0, episode.steps(), std::span(values));
  return values;
}

/// The settings' seed of an episode, from its text.
std::uint32_t seed_of(const data::Episode& episode) {
  const std::string text(episode.metadata("episode_metadata/file_path"));
  return static_cast<std::uint32_t>(std::stoul(text.substr(text.rfind('_') + 1)));
}

TEST(PushTDemonstrations, RecordedActionsLeadThroughTheRecordedStatesToSuccess) {
  // Actions are recorded in float32 (3e-5 px at 512) and played in the float64 simulation; contacts amplify that.
  constexpr double kStateTolerance = 0.5;  // px
  const OwnFolder folder;
  const auto report = record_push_t(folder.path(), small_settings());
  EXPECT_EQ(report.path, folder.path() / "push_t" / "1.0.0");
  EXPECT_EQ(report.episodes, kEpisodes);
  const auto source = data::open_episodes(report.path, {.checksums = "always"});
  ASSERT_EQ(source->size(), kEpisodes);
  std::int64_t steps = 0;
  for (std::int64_t e = 0; e < kEpisodes; ++e) {
    const auto episode = source->open(e);
    SCOPED_TRACE(episode->location());
    steps += episode->steps();
    const auto count = static_cast<std::size_t>(episode->steps());
    const auto states = read(*source, *episode, "observation/state"), actions = read(*source, *episode, "action");
    const auto keypoints = read(*source, *episode, "observation/environment_state");
    const auto agents = read(*source, *episode, "observation/agent_pos"),
               offsets = read(*source, *episode, "action_offset");
    const auto rewards = read(*source, *episode, "reward"), last = read(*source, *episode, "is_last");
    tasks::PushT world;
    tasks::PushTState state = world.reset(seed_of(*episode));
    for (std::size_t t = 0; t < count; ++t) {
      for (std::size_t i = 0; i < 4; ++i) ASSERT_NEAR(states[5 * t + i], state[i], kStateTolerance) << "step " << t;
      const auto corners = world.keypoints();
      for (std::size_t i = 0; i < corners.size(); ++i)
        ASSERT_NEAR(keypoints[16 * t + i], corners[i], 2 * kStateTolerance) << "step " << t;
      for (std::size_t i = 0; i < 2; ++i) {
        ASSERT_EQ(agents[2 * t + i], states[5 * t + i]);
        ASSERT_NEAR(agents[2 * t + i] + offsets[2 * t + i], actions[2 * t + i], 1e-3) << "float32";
        ASSERT_GE(actions[2 * t + i], 0);
        ASSERT_LE(actions[2 * t + i], tasks::kPushTWorld);
      }
      const tasks::PushTStep result = world.step({actions[2 * t], actions[2 * t + 1]});
      ASSERT_NEAR(rewards[t], result.reward, 0.05) << "step " << t;
      EXPECT_EQ(last[t], t + 1 == count ? 1 : 0);
      state = result.observation;
    }
    EXPECT_EQ(rewards.back(), 1.0) << "only solved episodes are recorded";
    EXPECT_EQ(episode->text(source->field_index("language_instruction"), 0).substr(0, 4), "push");
  }
  EXPECT_EQ(steps, report.steps);
}

TEST(PushTDemonstrations, BytesDoNotDependOnThreadsButOnTheSeedOfTheNoise) {
  const OwnFolder folder;
  PushTDemonstrationSettings settings = small_settings();
  settings.noise = 1;
  const auto bytes_of = [&](const char* name, int threads, std::uint64_t noise_seed) {
    settings.name = name;
    settings.threads = threads;
    settings.noise_seed = noise_seed;
    const auto report = record_push_t(folder.path(), settings);
    const data::RldsRecords records(report.path, {});
    return std::string(records.payload(0)) + std::string(records.payload(1));
  };
  const std::string one = bytes_of("one", 1, 0), two = bytes_of("two", 2, 0), other = bytes_of("other", 2, 1);
  EXPECT_EQ(one, two);
  EXPECT_NE(one, other);
}

TEST(PushTDemonstrations, AnUnsolvableSettingIsSaidAndLeavesNothing) {
  const OwnFolder folder;
  PushTDemonstrationSettings settings = small_settings();
  settings.max_steps = 1;
  try {
    record_push_t(folder.path(), settings);
    FAIL() << "one step cannot solve Push-T";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("solved only 0 of 8 episodes"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "push_t" / "1.0.0"));
}

TEST(PushTFields, RecordedActionsMeanTheActionsThatWereRecorded) {
  tasks::PushT world;
  world.reset(kSeed);
  const tasks::PushTAction action = {123, 456};
  for (const char* field : {"action", "action_offset"}) {
    const std::vector<double> recorded = push_t_recorded_action(world, field, action);
    const std::vector<float> values(recorded.begin(), recorded.end());
    const tasks::PushTAction meant = push_t_action(world, field, values);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(meant[i], action[i], 1e-4) << field;
  }
  const std::vector<float> far = {1000, -1000};
  EXPECT_EQ(push_t_action(world, "action_offset", far), (tasks::PushTAction{tasks::kPushTWorld, 0}));
  EXPECT_THROW(push_t_action(world, "action", std::vector<float>(3)), Error);
  EXPECT_THROW(push_t_action(world, "actions", far), Error);
  EXPECT_THROW(push_t_observation(world, "observation/image"), Error);
}

TEST(PushTReplay, FromARecordedStartItPlaysTheRecordedActions) {
  const OwnFolder folder;
  const auto report = record_push_t(folder.path(), small_settings());
  const auto source = data::open_episodes(report.path);
  const PushTReplay replay(*source);
  EXPECT_EQ(replay.size(), report.steps);
  const auto episode = source->open(1);
  const auto actions = read(*source, *episode, "action");
  const auto policy = replay.policy(episode->steps());
  tasks::PushT world;
  world.reset(seed_of(*episode));
  for (std::int64_t t = 0; t < episode->steps(); ++t) {
    const tasks::PushTAction action = policy(world, t);
    EXPECT_EQ(action[0], actions[static_cast<std::size_t>(2 * t)]) << t;
    EXPECT_EQ(action[1], actions[static_cast<std::size_t>(2 * t + 1)]) << t;
  }
  EXPECT_THROW(replay.policy(0), Error);
}

TEST(PushTReplay, OtherDataAreRefusedByName) {
  const auto source = data::open_episodes(data::fixture("arm"));
  try {
    const PushTReplay replay(*source);
    FAIL() << "the fixture is no Push-T";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("observation/state"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cohort::record
