// What is kept between runs about large RLDS sets, and that nothing stale or damaged of it is believed.
#include "data/rlds/shard_index.h"

#include <chrono>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data/episode_notes.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/random_text.h"
#include "data/rlds/rlds_episodes.h"
#include "data/robot_windows.h"
#include "data/toy_set.h"
#include "data/transforms/filter.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

class KeptIndex : public ::testing::Test {
 protected:
  KeptIndex() { write(6); }

  /// Six shards with two episodes each; episode e has e % 5 + `least` steps.
  void write(std::size_t least) {
    fs::remove_all(folder_.path() / "toy");
    std::vector<ToyEpisode> episodes;
    for (std::size_t e = 0; e < 12; ++e) {
      ToyEpisode episode{.file_path = e % 3 == 0 ? "lab/failure" : "lab/success"};
      for (std::size_t i = 0; i < e % 5 + least; ++i)
        episode.fields["action"].push_back(static_cast<float>(100 * e + i));
      episodes.push_back(episode);
    }
    home_ = write_toy_set(folder_.path(), episodes, {{"action", 1}}, 6);
  }

  RldsSettings settings(const std::string& on_corrupt = "error", const std::string& split = "train") const {
    return {.split = split, .on_corrupt = on_corrupt, .threads = 1, .index_cache = cache_.string()};
  }

  fs::path shard(int i) const { return home_ / format("toy-train.tfrecord-0000{}-of-00006", i); }

  fs::path index() const {
    for (const auto& entry : fs::directory_iterator(cache_))
      if (entry.path().filename().string().starts_with("rlds_index_")) return entry.path();
    throw Error("there is no index");
  }

  /// Overwrites bytes of a shard without a trace: same size, same time of change.
  void overwrite(const fs::path& path, const std::string& content) {
    struct stat before {};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    ASSERT_EQ(static_cast<std::size_t>(before.st_size), content.size());
    std::ofstream(path, std::ios::binary) << content;
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  static std::vector<std::int64_t> lengths(const RldsEpisodes& episodes) {
    std::vector<std::int64_t> all;
    for (std::int64_t e = 0; e < episodes.size(); ++e) all.push_back(episodes.steps(e));
    return all;
  }

  OwnFolder folder_;
  fs::path home_;
  fs::path cache_ = folder_.path() / "cache";
};

TEST_F(KeptIndex, TheSecondOpeningReadsNothingOfTheShards) {
  std::vector<std::int64_t> first;
  std::uint64_t hash = 0;
  {
    const RldsEpisodes episodes(home_, settings());
    first = lengths(episodes);
    hash = episodes.content_hash();
  }
  // If anything of the shards were read, this would be found out.
  for (int s = 0; s < 6; ++s) overwrite(shard(s), std::string(fs::file_size(shard(s)), '\xFF'));
  const RldsEpisodes again(home_, settings());
  EXPECT_EQ(lengths(again), first);
  EXPECT_EQ(again.content_hash(), hash);
  EXPECT_ERROR(again.open(0),
               "toy-train.tfrecord-00000-of-00006: record at offset 0: the record's length does not have "
               "its checksum");
  EXPECT_ERROR(RldsEpisodes(home_, {.index_cache = "never"}), "the record's length does not have its checksum");
}

TEST_F(KeptIndex, AShardThatChangedIsReadAgainAndOnlyThatOne) {
  RldsEpisodes(home_, settings());
  const std::string other = read_file(shard(3));
  write(7);  // every episode is longer now
  const RldsEpisodes fresh(home_, {.index_cache = "never"});
  const RldsEpisodes episodes(home_, settings());
  EXPECT_EQ(lengths(episodes), lengths(fresh));
  EXPECT_EQ(episodes.content_hash(), fresh.content_hash());
  // A new time alone is enough to read again.
  const std::string bytes = read_file(index());
  fs::last_write_time(shard(2), fs::last_write_time(shard(2)) + std::chrono::seconds(2));
  RldsEpisodes(home_, settings());
  EXPECT_NE(read_file(index()), bytes);
}

TEST_F(KeptIndex, PartsOfASetAreKeptAndAddedTo) {
  RldsEpisodes(home_, settings("error", "train[:3]"));  // all of one shard, and half of the next
  const RldsEpisodes rest(home_, settings("error", "train[3:]"));
  EXPECT_EQ(rest.size(), 9);
  for (int s = 0; s < 6; ++s) overwrite(shard(s), std::string(fs::file_size(shard(s)), '\xFF'));
  const RldsEpisodes whole(home_, settings());
  EXPECT_EQ(lengths(whole), (std::vector<std::int64_t>{6, 7, 8, 9, 10, 6, 7, 8, 9, 10, 6, 7}));
}

TEST_F(KeptIndex, LookingForDamagedRecordsIsDoneOnceWhereThereAreNone) {
  RldsEpisodes(home_, settings());  // has not looked at the records' bytes
  std::string bytes = read_file(shard(1));
  bytes[bytes.size() - 8] ^= 1;
  overwrite(shard(1), bytes);
  for (int round = 0; round < 2; ++round) {
    const RldsEpisodes sound(home_, settings("skip"));
    EXPECT_EQ(sound.size(), 11) << "a damaged shard is looked through every time";
    ASSERT_EQ(sound.skipped().size(), 1u);
    EXPECT_NE(sound.skipped()[0].find(shard(1).string()), std::string::npos);
  }
  for (const int s : {0, 2, 3, 4, 5}) overwrite(shard(s), std::string(fs::file_size(shard(s)), '\xFF'));
  EXPECT_EQ(RldsEpisodes(home_, settings("skip")).size(), 11) << "sound ones were looked through before";
}

TEST_F(KeptIndex, ADamagedIndexIsMadeAnew) {
  RldsEpisodes(home_, settings());
  const std::string sound = read_file(index());
  const auto wanted = lengths(RldsEpisodes(home_, settings()));
  TestRandom random(5);
  for (int round = 0; round < 60; ++round) {
    std::string bytes = sound;
    const auto at = static_cast<std::size_t>(random.below(static_cast<int>(bytes.size())));
    if (round % 3 == 0)
      bytes.resize(at);
    else
      bytes[at] = static_cast<char>(bytes[at] ^ (1 + random.below(255)));
    std::ofstream(index(), std::ios::binary) << bytes;
    EXPECT_EQ(lengths(RldsEpisodes(home_, settings())), wanted);
    EXPECT_EQ(read_file(index()), sound) << "round " << round;
  }
}

TEST_F(KeptIndex, OneThatCannotBeWrittenCostsNothingButTime) {
  std::ofstream(cache_) << "a file where the folder should be";
  const RldsEpisodes episodes(home_, settings());
  EXPECT_EQ(episodes.size(), 12);
  EXPECT_EQ(read_file(cache_), "a file where the folder should be");
}

TEST_F(KeptIndex, SmallSetsAndThoseThatSayNeverLeaveNothingBehind) {
  RldsEpisodes(home_, {.index_cache = "auto"});
  RldsEpisodes(home_, {.index_cache = "never"});
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(home_)) ++files;
  EXPECT_EQ(files, 8u) << "six shards, features.json and dataset_info.json";
}

TEST_F(KeptIndex, WhatFiltersFoundIsKeptWithTheContentItWasFoundIn) {
  const std::vector<std::string> rules{"metadata_contains(episode_metadata/file_path, success)", "min_steps(7)"};
  std::vector<std::int64_t> kept;
  {
    const RldsEpisodes episodes(home_, settings());
    const EpisodeNotes notes(episodes, home_, cache_.string());
    kept = filter_episodes(episodes, rules, 1, &notes);
    EXPECT_EQ(kept, filter_episodes(episodes, rules, 1));
    EXPECT_EQ(kept, (std::vector<std::int64_t>{1, 2, 4, 7, 8, 11}));
  }
  for (int s = 0; s < 6; ++s) overwrite(shard(s), std::string(fs::file_size(shard(s)), '\xFF'));
  const RldsEpisodes episodes(home_, settings());
  const EpisodeNotes notes(episodes, home_, cache_.string());
  EXPECT_EQ(filter_episodes(episodes, rules, 1, &notes), kept) << "no episode was opened";
  EXPECT_ANY_THROW(filter_episodes(episodes, {rules[0]}, 1, &notes)) << "another question";
  for (const auto& entry : fs::directory_iterator(cache_))
    if (entry.path().filename().string().starts_with("episode_notes_"))
      std::ofstream(entry.path()) << R"({"question": "episodes that pass nothing", "answer": [1]})";
  EXPECT_ANY_THROW(filter_episodes(episodes, rules, 1, &notes)) << "an answer to another question is not believed";
}

TEST_F(KeptIndex, TrainingDataAreOpenedAgainWithoutReadingThem) {
  RobotDataSettings wanted;
  wanted.paths = {home_.string()};
  wanted.actions = {"action"};
  wanted.filters = {"metadata_contains(episode_metadata/file_path, success)"};
  wanted.instruction = "episode_metadata/file_path";
  wanted.statistics_cache = wanted.index_cache = cache_.string();
  wanted.threads = 1;
  const std::int64_t windows = RobotWindows(wanted).size();
  for (int s = 0; s < 6; ++s) overwrite(shard(s), std::string(fs::file_size(shard(s)), '\xFF'));
  const RobotWindows again(wanted);
  EXPECT_EQ(again.size(), windows);
  EXPECT_EQ(again.instructions(), std::vector<std::string>{"lab/success"});
}

}  // namespace
}  // namespace cohort::data
