// The HDF5 reader against what h5py reads from the same files (fixtures/make_hdf5_fixture.py).
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/hdf5/metadata.h"
#include "data/open_episodes.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Every field of an episode equals the dump that h5py made of it.
void expect_episode(const Hdf5Episodes& episodes, const Episode& episode, const Json& expected) {
  for (std::size_t f = 0; f < episodes.fields().size(); ++f) {
    const StepField& field = episodes.fields()[f];
    SCOPED_TRACE(episode.location() + " " + field.name);
    const Json& wanted = expected.at(field.name);
    EXPECT_EQ(episode.steps(), wanted["shape"][0].get<std::int64_t>());
    if (field.kind == StepKind::kImage) {
      for (std::int64_t t = 0; t < episode.steps(); ++t) {
        std::string scratch;
        const StoredImage image = episode.image(f, t, scratch);
        std::int64_t sum = 0, weighted = 0;
        for (std::size_t i = 0; i < image.bytes.size(); ++i) {
          const auto pixel = static_cast<unsigned char>(image.bytes[i]);
          sum += pixel;
          weighted += static_cast<std::int64_t>(pixel * (i % 251));
        }
        EXPECT_EQ(sum, wanted["images"][static_cast<std::size_t>(t)][0].get<std::int64_t>());
        EXPECT_EQ(weighted, wanted["images"][static_cast<std::size_t>(t)][1].get<std::int64_t>());
      }
      continue;
    }
    std::vector<double> values(wanted["values"].size());
    episode.read(f, 0, episode.steps(), values);
    EXPECT_EQ(values, wanted["values"].get<std::vector<double>>());
    for (std::int64_t t = 0; t + 1 < episode.steps(); ++t) {  // two rows across the borders of chunks
      const auto elements = static_cast<std::size_t>(field.elements());
      std::vector<float> rows(2 * elements);
      episode.read(f, t, 2, rows);
      for (std::size_t i = 0; i < rows.size(); ++i)
        EXPECT_EQ(rows[i], static_cast<float>(values[static_cast<std::size_t>(t) * elements + i]));
    }
  }
}

class Hdf5 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  }
  const Json expected_ = fixture_json("hdf5_expected.json");
};

TEST_F(Hdf5, RobomimicReadsAsH5pyReadsIt) {
  const Hdf5Episodes episodes(fixture("robomimic.hdf5"));
  ASSERT_EQ(episodes.size(), 2);
  EXPECT_EQ(episodes.episode_name(1), "data/demo_10") << "demos are ordered by number";
  EXPECT_EQ(episodes.fields().size(), expected_["robomimic"]["demo_2"].size());
  EXPECT_EQ(episodes.fields()[episodes.field_index("dones")].type, ElementType::kBool);
  for (std::int64_t e = 0; e < episodes.size(); ++e)
    expect_episode(episodes, *episodes.open(e), expected_["robomimic"][episodes.episode_name(e).substr(5)]);
  EXPECT_EQ(episodes.open(0)->metadata("model_file"), "<mujoco/>");
  EXPECT_EQ(episodes.open(0)->metadata("num_samples"), "5");
  EXPECT_NE(episodes.open(0)->metadata("data/env_args").find("Lift"), std::string::npos);
}

TEST_F(Hdf5, LiberoReadsAsH5pyReadsItWithItsInstruction) {
  const Hdf5Episodes episodes(fixture("libero.hdf5"));
  ASSERT_EQ(episodes.size(), 2);
  for (std::int64_t e = 0; e < episodes.size(); ++e)
    expect_episode(episodes, *episodes.open(e), expected_["libero"][episodes.episode_name(e).substr(5)]);
  EXPECT_EQ(episodes.open(1)->metadata("language_instruction"), "put the bowl on the plate");
}

TEST_F(Hdf5, EveryPackingReadsAsH5pyReadsIt) {
  const Hdf5Episodes episodes(fixture("filters.hdf5"));
  ASSERT_EQ(episodes.size(), 2);
  EXPECT_EQ(episodes.fields().size(), expected_["filters"]["demo_0"].size());
  for (std::int64_t e = 0; e < episodes.size(); ++e)
    expect_episode(episodes, *episodes.open(e), expected_["filters"][episodes.episode_name(e).substr(5)]);
}

TEST_F(Hdf5, AFilterThatIsNotReadIsNamedWithTheRemedy) {
  const auto open = [] { Hdf5Episodes(fixture("unknown_filter.hdf5")).open(0); };
  EXPECT_ERROR(open(), "unknown_filter.hdf5: /data/demo_0/actions is packed with the filter 6 (scaleoffset)");
  EXPECT_ERROR(open(), "repack the file with h5repack -f GZIP=4");
}

TEST_F(Hdf5, TrajectoryFilesAreReadByManifestAndByFolder) {
  const Hdf5Episodes listed(fixture("droid_hdf5/manifest.json"));
  ASSERT_EQ(listed.size(), 2);
  EXPECT_EQ(listed.steps(0), 4);
  EXPECT_EQ(listed.steps(1), 5);
  EXPECT_EQ(listed.open(1)->metadata("lang"), "close the lid");
  EXPECT_EQ(listed.open(1)->metadata("building"), "lab");
  EXPECT_EQ(listed.open(1)->metadata("success"), "true");
  expect_episode(listed, *listed.open(0), expected_["droid"]["a"]);
  expect_episode(listed, *listed.open(1), expected_["droid"]["b"]);
  EXPECT_EQ(Hdf5Episodes(fixture("droid_hdf5")).size(), 2);
}

TEST_F(Hdf5, AMaskSelectsDemosAndAWrongOneNamesThoseThatExist) {
  const Hdf5Episodes train(fixture("robomimic.hdf5"), {.filter_key = "train"});
  ASSERT_EQ(train.size(), 1);
  EXPECT_EQ(train.episode_name(0), "data/demo_10");
  EXPECT_EQ(Hdf5Episodes(fixture("robomimic.hdf5"), {.filter_key = "valid"}).episode_name(0), "data/demo_2");
  EXPECT_ERROR(Hdf5Episodes(fixture("robomimic.hdf5"), {.filter_key = "best"}), "its masks are train, valid");
}

TEST_F(Hdf5, ManyThreadsReadTheSameFileAtTheSameTime) {
  const Hdf5Episodes episodes(fixture("robomimic.hdf5"), {.cache_bytes = 1});  // nothing is kept
  const std::size_t states = episodes.field_index("states");
  const auto wanted = expected_["robomimic"]["demo_10"]["states"]["values"].get<std::vector<double>>();
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (std::size_t i = 0; i < good.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        std::vector<double> values(wanted.size());
        episodes.open(1)->read(states, 0, 7, values);
        good[i] += values == wanted;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 20));
}

TEST_F(Hdf5, ACutFileIsNamed) {
  OwnFolder folder;
  const fs::path copy = folder.path() / "cut.hdf5";
  const std::string bytes = read_file(fixture("robomimic.hdf5"));
  std::ofstream(copy, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_ERROR(Hdf5Episodes{copy}, copy.string());
  std::ofstream(copy, std::ios::binary) << "not HDF5";
  EXPECT_ERROR(Hdf5Episodes{copy}, "it is another kind of file (`file " + copy.string() + "` says which)");
  std::ofstream(copy, std::ios::binary) << bytes.substr(0, bytes.size() - 1);
  EXPECT_ERROR(Hdf5Episodes{copy}, "it was cut or is still being written; copy it again");
  std::ofstream(copy, std::ios::binary) << "<html><head><title>404</title></head></html>";
  EXPECT_ERROR(Hdf5Episodes{copy}, "cut.hdf5 is a web page, not the file itself: download it again");
  fs::resize_file(copy, 0);
  EXPECT_ERROR(Hdf5Episodes{copy}, "cut.hdf5 is empty (0 bytes)");
  EXPECT_ERROR(Hdf5Episodes{folder.path() / "none.hdf5"}, "there is no file or folder");
}

TEST_F(Hdf5, WhatLiberoAndRoboCasaTellAnEpisodeIsReadInTheFormsTheyHave) {
  const std::vector<std::pair<std::string, std::string>> told{
      {"ep_meta", R"({"lang": "open the drawer", "layout_id": 3})"},
      {"problem_info", R"({"language_instruction": "open the drawer"})"},
      {"problem_info", R"({"language_instruction": ["open", "the", "drawer"]})"},
      {"problem_info", R"({"language_instruction": ["open the drawer"]})"},
      {"problem_info", R"({"language_instruction": ["o","p","e","n"," ","t","h","e"," ","d","r","a","w","e","r"]})"}};
  for (std::size_t i = 0; i < told.size(); ++i) {
    OwnFolder folder;
    const fs::path path = folder.path() / "told.hdf5";
    std::vector<float> rows(10, 1.0f);
    Hdf5Writer writer(path);
    writer.begin_demo(5);
    writer.add("actions", make_view(rows.data(), {5, 2}), false);
    writer.attribute(told[i].first, told[i].second);
    writer.finish();
    EXPECT_EQ(Hdf5Episodes(path).open(0)->metadata("language_instruction"), "open the drawer") << told[i].second;
  }
}

TEST_F(Hdf5, AFlippedBitInACheckedChunkIsFound) {
  OwnFolder folder;
  const fs::path copy = folder.path() / "flip.hdf5";
  const auto arrays = Hdf5Metadata(fixture("robomimic.hdf5")).arrays("/data/demo_2");
  std::string bytes = read_file(fixture("robomimic.hdf5"));
  for (const auto& [name, array] : arrays)
    if (name == "obs/short") bytes[array.chunks[0].offset] ^= 4;
  std::ofstream(copy, std::ios::binary) << bytes;
  const Hdf5Episodes episodes(copy);
  std::vector<double> values(10);
  EXPECT_ERROR(episodes.open(0)->read(episodes.field_index("obs/short"), 0, 5, values),
               "/data/demo_2/obs/short: a chunk does not have its checksum");
}

TEST_F(Hdf5, WithoutANameItIsTheMaskTrainOfEveryFileThatHasOne) {
  OwnFolder folder;
  for (const char* name : {"a.hdf5", "b.hdf5"}) fs::copy_file(fixture("robomimic.hdf5"), folder.path() / name);
  const auto open = [&](const std::string& split) { return open_episodes(folder.path(), {.split = split}); };
  const auto train = open("train");
  ASSERT_EQ(train->size(), 2);
  for (std::int64_t e = 0; e < 2; ++e) EXPECT_TRUE(train->open(e)->location().ends_with("/data/demo_10"));
  EXPECT_EQ(train->selection(), "mask/train: 2 of 4 demos");
  const auto valid = open("valid");
  ASSERT_EQ(valid->size(), 2);
  for (std::int64_t e = 0; e < 2; ++e) EXPECT_TRUE(valid->open(e)->location().ends_with("/data/demo_2"));
  EXPECT_EQ(open("all")->size(), 4);
  EXPECT_EQ(open("all")->selection(), "all 4 demos, whatever masks there are: the split auto, training's, takes 2");
  EXPECT_EQ(open("auto")->selection(), "mask/train: 2 of 4 demos (split auto; the split all takes every demo)");
  const fs::path manifest = folder.path() / "list.json";
  std::ofstream(manifest) << R"(["a.hdf5", "b.hdf5"])";
  EXPECT_EQ(open_episodes(manifest)->size(), 2);

  fs::copy_file(fixture("libero.hdf5"), folder.path() / "c.hdf5");  // without masks
  EXPECT_EQ(open("auto")->size(), 4);
  EXPECT_EQ(open("auto")->selection(),
            "mask/train: 2 of 4 demos, and all of 1 files that have no such mask (split auto; the split all takes "
            "every demo)");
  EXPECT_EQ(open("all")->selection(), "all 6 demos, whatever masks there are: the split auto, training's, takes 4");
  EXPECT_ERROR(open("train"), "c.hdf5 has no /mask/train, and no other masks");
  EXPECT_ERROR(open("valid"), "c.hdf5 has no /mask/valid");
  EXPECT_ERROR(open("train[:50%]"), "slices such as train[:50%] are for RLDS only");
}

TEST_F(Hdf5, DataOfAnotherFileAreRefusedWithTheRemedy) {
  // Their place in the other file would be looked up in this one.
  const auto open = [] { Hdf5Episodes{fixture("linked.hdf5")}; };
  EXPECT_ERROR(open(), "linked.hdf5: /data/demo_0/");
  EXPECT_ERROR(open(), "robomimic.hdf5, to which a link leads");
  EXPECT_ERROR(open(), "h5copy -f ext");
  const Hdf5Episodes rest(fixture("linked.hdf5"), {.on_corrupt = "skip"});
  ASSERT_EQ(rest.size(), 1);
  EXPECT_EQ(rest.episode_name(0), "data/demo_1");
  ASSERT_EQ(rest.skipped().size(), 2u);
  EXPECT_NE(rest.skipped()[0].find("to which a link leads"), std::string::npos) << rest.skipped()[0];
  EXPECT_NE(rest.skipped()[1].find("has no group /data/demo_2, or a link that leads nowhere"), std::string::npos)
      << rest.skipped()[1];
}

TEST_F(Hdf5, GroupsThatAreTheirOwnMembersEnd) {
  const Hdf5Episodes episodes(fixture("loops.hdf5"));
  std::vector<std::string> names;
  for (const StepField& field : episodes.fields()) names.push_back(field.name);
  EXPECT_EQ(names, (std::vector<std::string>{"actions", "next_obs/x", "obs/x"}));
  std::vector<double> values(4);
  episodes.open(0)->read(episodes.field_index("next_obs/x"), 0, 4, values);
  EXPECT_EQ(values, (std::vector<double>{0, 1, 2, 3}));
}

/// Four demos of 5 steps: the first lacks obs/state, the second has a damaged frame.
fs::path write_damaged(const fs::path& path) {
  {
    Hdf5Writer writer(path);
    for (int demo = 0; demo < 4; ++demo) {
      std::vector<float> rows(10, static_cast<float>(demo));
      std::vector<std::uint8_t> frames(std::size_t{5} * 6 * 6 * 3);
      for (std::size_t i = 0; i < frames.size(); ++i) frames[i] = static_cast<std::uint8_t>(i * 7 % 251);
      writer.begin_demo(5);
      writer.add("actions", make_view(rows.data(), {5, 2}), false);
      if (demo > 0) writer.add("obs/state", make_view(rows.data(), {5, 2}), false);
      writer.add("obs/image", make_view(frames.data(), {5, 6, 6, 3}), true);
    }
    writer.finish();
  }
  const Hdf5Chunk chunk = Hdf5Metadata(path).array("/data/demo_1/obs/image").chunks[3];
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(chunk.offset));
  file << std::string(chunk.bytes, '\x55');
  return path;
}

TEST_F(Hdf5, DamagedEpisodesAreLeftOutCountedAndNamed) {
  OwnFolder folder;
  const fs::path path = write_damaged(folder.path() / "damaged.hdf5");
  const fs::path kept = folder.path() / "kept";
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again ? "again" : "for the first time");
    const Hdf5Episodes episodes(path, {.on_corrupt = "skip", .threads = 2, .index_cache = kept.string()});
    ASSERT_EQ(episodes.size(), 2);
    EXPECT_EQ(episodes.episode_name(0), "data/demo_2");
    EXPECT_EQ(episodes.fields().size(), 3u) << "the fields are those of most episodes, not of the first";
    ASSERT_EQ(episodes.skipped().size(), 2u);
    const std::string where = path.string() + ": /data/demo_";
    EXPECT_TRUE(episodes.skipped()[0].starts_with(where + "0: lacks the field obs/state")) << episodes.skipped()[0];
    EXPECT_TRUE(episodes.skipped()[1].starts_with(where + "1/obs/image: a chunk does not inflate"))
        << episodes.skipped()[1];
    std::vector<float> rows(10);
    episodes.open(1)->read(episodes.field_index("obs/state"), 0, 5, rows);
    EXPECT_EQ(rows, std::vector<float>(10, 3.0f));
    EXPECT_EQ(std::distance(fs::directory_iterator(kept), {}), 1) << "what was found is kept";
  }
}

TEST_F(Hdf5, WithoutSkipADamagedEpisodeIsNamedWhenItIsRead) {
  OwnFolder folder;
  const fs::path path = write_damaged(folder.path() / "damaged.hdf5");
  const Hdf5Episodes episodes(path);
  ASSERT_EQ(episodes.size(), 4);
  std::string scratch;
  EXPECT_ERROR(episodes.open(1)->image(episodes.field_index("obs/image"), 3, scratch),
               path.string() + ": /data/demo_1/obs/image: a chunk does not inflate");
}

TEST_F(Hdf5, AFieldThatOneEpisodeLacksIsNamedWhenItIsRead) {
  OwnFolder folder;
  const fs::path path = folder.path() / "lacking.hdf5";
  {
    Hdf5Writer writer(path);
    std::vector<float> rows(10, 1.0f);
    for (int demo = 0; demo < 3; ++demo) {
      writer.begin_demo(5);
      writer.add("actions", make_view(rows.data(), {5, 2}), false);
      if (demo != 1) writer.add("obs/state", make_view(rows.data(), {5, 2}), false);
    }
    writer.finish();
  }
  const Hdf5Episodes episodes(path);
  std::vector<float> rows(10);
  episodes.open(1)->read(episodes.field_index("actions"), 0, 5, rows);
  EXPECT_EQ(rows, std::vector<float>(10, 1.0f));
  EXPECT_ERROR(episodes.open(1)->read(episodes.field_index("obs/state"), 0, 5, rows),
               "/data/demo_1: lacks the field obs/state that other episodes have");
}

TEST_F(Hdf5, AManifestsTextsAndTheFilesNamesBelongToTheContent) {
  OwnFolder folder;
  fs::copy(fixture("droid_hdf5"), folder.path() / "set", fs::copy_options::recursive);
  const fs::path manifest = folder.path() / "set/manifest.json";
  const auto hash = [&](const std::string& list) {
    std::ofstream(manifest) << list;
    return Hdf5Episodes(manifest).content_hash();
  };
  const std::string success = R"([{"path": "a/trajectory.h5", "outcome": "success"}])";
  const std::uint64_t first = hash(success);
  EXPECT_EQ(hash(success), first);
  EXPECT_NE(hash(R"([{"path": "a/trajectory.h5", "outcome": "failure"}])"), first);
  fs::rename(folder.path() / "set/a", folder.path() / "set/c");
  EXPECT_NE(hash(R"([{"path": "c/trajectory.h5", "outcome": "success"}])"), first);
  fs::rename(folder.path() / "set/c", folder.path() / "set/a");
  std::ofstream(manifest) << success;
  fs::rename(folder.path() / "set", folder.path() / "elsewhere");
  EXPECT_EQ(Hdf5Episodes(folder.path() / "elsewhere/manifest.json").content_hash(), first)
      << "where the whole set lies does not";
}

/// A sound file in which single bytes are replaced.
void write_damaged(const fs::path& to, std::initializer_list<std::pair<std::size_t, int>> bytes) {
  std::string text = read_file(fixture("robomimic.hdf5"));
  for (const auto& [at, value] : bytes) text[at] = static_cast<char>(value);
  std::ofstream(to, std::ios::binary) << text;
}

TEST_F(Hdf5, FilesOverWhichTheLibraryCrashesOrNeverEndsAreRefusedAndTheNextOneIsRead) {
  OwnFolder folder;
  const fs::path crashes = folder.path() / "crashes.hdf5", turns = folder.path() / "turns.hdf5";
  // Found by RobotFuzz.Hdf5AttributesReadOrAreRefused: libhdf5 1.10.8 dies of a segmentation fault over the one, and
  // goes round in circles over the other. Later versions may see that they are damaged.
  write_damaged(crashes, {{3127, 247}});
  write_damaged(turns, {{66859, 230}, {66939, 246}});
  const auto walk = [](const fs::path& file) {
    const Hdf5Metadata metadata(file);
    for (const std::string& demo : metadata.groups("/data")) metadata.attributes("/data/" + demo);
    metadata.attributes("/data");
    for (const std::string& mask : metadata.data_sets("/mask")) metadata.texts("/mask/" + mask);
  };
  const Hdf5Metadata sound(fixture("robomimic.hdf5"));
  const auto demos = sound.groups("/data");
  // Where a build checks every copy, the crash comes late: the question ends by its time.
  ::setenv("COHORT_HDF5_SECONDS", "2", 1);
  EXPECT_ERROR(walk(crashes), "crashes.hdf5");
  EXPECT_EQ(sound.groups("/data"), demos) << "a file that was open before is opened again";
  EXPECT_ERROR(walk(turns), "turns.hdf5");
  EXPECT_EQ(sound.groups("/data"), demos);
  // One of them among others: left out on request.
  fs::copy_file(fixture("robomimic.hdf5"), folder.path() / "sound.hdf5");
  fs::remove(turns);
  EXPECT_ERROR(Hdf5Episodes(folder.path()), "crashes.hdf5");
  const Hdf5Episodes rest(folder.path(), {.on_corrupt = "skip", .index_cache = "never"});
  EXPECT_EQ(rest.size(), Hdf5Episodes(fixture("robomimic.hdf5")).size());
  ASSERT_FALSE(rest.skipped().empty());
  EXPECT_NE(rest.skipped()[0].find("crashes.hdf5"), std::string::npos) << rest.skipped()[0];
  ::unsetenv("COHORT_HDF5_SECONDS");
}

TEST_F(Hdf5, RelativePathsHoldInTheWorkingDirectoryOfTheQuestion) {
  const Hdf5Metadata first(fixture("libero.hdf5"));  // libhdf5's process runs since now, at the latest
  const fs::path before = fs::current_path();
  OwnFolder folder;
  fs::copy_file(fixture("libero.hdf5"), folder.path() / "here.hdf5");
  fs::current_path(folder.path());
  EXPECT_EQ(Hdf5Metadata("here.hdf5").groups("/data"), first.groups("/data"));
  EXPECT_ERROR(Hdf5Metadata("gone.hdf5"), "there is no file gone.hdf5");
  fs::current_path(before);
}

TEST_F(Hdf5, ThreadsAndForkedProcessesAskAtTheSameTime) {
  const fs::path file = fixture("robomimic.hdf5");
  const auto expected = Hdf5Metadata(file).attributes("/data");
  const auto ask = [&] {
    for (int i = 0; i < 50; ++i)
      if (Hdf5Metadata(file).attributes("/data") != expected) return false;
    return true;
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ask() ? 0 : 1);
  std::vector<char> equal(4, 0);
  std::vector<std::thread> threads;
  for (char& one : equal) threads.emplace_back([&] { one = ask() ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<char>(4, 1));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Hdf5, OnlyWhatIsReadCountsAsHeld) {
  const Hdf5Episodes episodes(fixture("robomimic.hdf5"));
  const auto episode = episodes.open(0);
  const std::int64_t frames =
      Hdf5Metadata(fixture("robomimic.hdf5")).array("/data/demo_2/obs/agentview_image").stored_bytes();
  std::vector<double> rows(35);
  episode->read(episodes.field_index("actions"), 0, 5, rows);
  const std::int64_t before = episodes.bytes_held();
  std::string scratch;
  episode->image(episodes.field_index("obs/agentview_image"), 0, scratch);
  EXPECT_GE(episodes.bytes_held(), before + frames);
  const std::int64_t after = episodes.bytes_held();
  episode->image(episodes.field_index("obs/agentview_image"), 1, scratch);
  EXPECT_EQ(episodes.bytes_held(), after) << "once";
}

}  // namespace
}  // namespace cohort::data
