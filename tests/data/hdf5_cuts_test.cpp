// Files whose arrays hold several episodes one behind the other (fixtures/make_flat_fixture.py): D4RL's flags, gymnasium's,
// places of ends as diffusion policy writes them. In all of them actions[t] = (t, -t).
#include <vector>

#include <gtest/gtest.h>

#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/hdf5/metadata.h"
#include "data/inspect.h"
#include "data/open_episodes.h"
#include "data/several_episodes.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

class FlatHdf5 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  }
  static fs::path file(const std::string& name) { return fixture("flat/" + name + ".hdf5"); }
};

/// The first actions' numbers of every episode.
std::vector<std::vector<float>> steps_of(const EpisodeSource& source) {
  const std::size_t actions = source.field_index("actions");
  std::vector<std::vector<float>> all;
  for (std::int64_t e = 0; e < source.size(); ++e) {
    const auto episode = source.open(e);
    EXPECT_EQ(episode->steps(), source.steps(e));
    std::vector<float> rows(static_cast<std::size_t>(2 * source.steps(e)));
    episode->read(actions, 0, source.steps(e), rows);
    all.emplace_back();
    for (std::size_t i = 0; i < rows.size(); i += 2) all.back().push_back(rows[i]);
  }
  return all;
}

const std::vector<std::vector<float>> kThree{{0, 1, 2}, {3, 4, 5, 6}, {7, 8, 9, 10, 11}};

TEST_F(FlatHdf5, EpisodesEndWhereTheFileSaysInEveryWayThatFilesSayIt) {
  const std::vector<std::pair<std::string, std::string>> ways{
      {"d4rl", "3 episodes: cut behind steps in which terminals or timeouts is true"},
      {"gymnasium", "3 episodes: cut behind steps in which terminated or truncated is true"},
      {"first", "3 episodes: cut behind steps in which is_last is true and before steps in which is_first is true"},
      {"starts", "3 episodes: cut before steps in which episode_starts is true"},
      {"numbers", "3 episodes: cut where episode_index changes"},
      {"places", "3 episodes: cut by /meta/episode_ends"},
      {"first_places", "3 episodes: cut by /episode_starts"}};
  for (const auto& [name, how] : ways) {
    SCOPED_TRACE(name);
    const auto source = open_episodes(file(name), {.index_cache = "never"});
    EXPECT_EQ(steps_of(*source), kThree);
    EXPECT_EQ(source->selection(), how);
    EXPECT_EQ(source->left_out(), std::vector<std::string>{}) << "lists of places are no array that lacks rows";
    EXPECT_NE(inspect_text(*source).find("3 episodes, 12 steps; an episode has 3 to 5, in the middle 4\n" + how),
              std::string::npos)
        << inspect_text(*source);
    const auto sound = open_episodes(file(name), {.on_corrupt = "skip", .index_cache = "never"});
    EXPECT_EQ(steps_of(*sound), kThree) << "those left out are none";
  }
}

TEST_F(FlatHdf5, PartsOfTheSameArraysAreEpisodesOfTheirOwn) {
  const Hdf5Episodes source(file("d4rl"));
  EXPECT_NE(source.place(0), source.place(1)) << "else validation's episodes would be taken for training's";
  EXPECT_EQ(source.place(1).second, "/[3:7]");
  EXPECT_TRUE(source.open(1)->location().ends_with("d4rl.hdf5: steps 3 to 6")) << source.open(1)->location();
  EXPECT_TRUE(source.episode_name(2).ends_with("d4rl.hdf5[7:12]"));
  EXPECT_NE(source.content_hash(), Hdf5Episodes(file("one")).content_hash());
  const std::size_t ends = source.field_index("timeouts");
  std::vector<float> one(1);
  source.open(1)->read(ends, 3, 1, one);
  EXPECT_EQ(one[0], 1) << "the step belongs to the episode that it ends, and its flag stays a field";
  // Compressed chunks of five rows, which several episodes share: unpacked once, and counted.
  const auto episode = source.open(2);
  const std::int64_t before = source.bytes_held();
  for (int again = 0; again < 2; ++again) {
    std::vector<double> rows(4);
    episode->read(source.field_index("actions"), 2, 2, rows);
    EXPECT_EQ(rows, (std::vector<double>{9, -9, 10, -10}));
  }
  EXPECT_GE(source.bytes_held(), before + 5 * 2 * 4);
}

TEST_F(FlatHdf5, WhatDoesNotCutIsSaid) {
  const Hdf5Episodes held(file("held")), quiet(file("quiet")), one(file("one")), one_step(file("one_step"));
  EXPECT_EQ(held.size(), 1) << "a success that is held to the end";
  EXPECT_EQ(held.selection(),
            "1 episode: none ends before the last steps: one would end behind steps in which dones is true");
  EXPECT_EQ(quiet.size(), 1);
  EXPECT_EQ(one.selection(),
            "1 episode: nothing says where episodes end: no terminals, timeouts, dones, is_last, episode_index or "
            "episode_ends");
  EXPECT_EQ(one_step.size(), 4);
  EXPECT_EQ(one_step.selection(), "4 episodes: cut behind steps in which dones is true (1 of one step)");
}

TEST_F(FlatHdf5, AFolderOfTrajectoriesIsNotAskedForFlags) {
  OwnFolder folder;
  fs::copy_file(file("one"), folder.path() / "a.hdf5");
  fs::copy_file(file("one"), folder.path() / "b.hdf5");
  EXPECT_EQ(Hdf5Episodes(folder.path()).selection(), "");
  fs::copy_file(file("d4rl"), folder.path() / "c.hdf5");
  const Hdf5Episodes mixed(folder.path());
  EXPECT_EQ(mixed.size(), 5);
  EXPECT_EQ(mixed.selection(), "3 episodes: cut behind steps in which terminals or timeouts is true");
}

TEST_F(FlatHdf5, PlacesThatAreNoneAreRefusedWithTheRemedy) {
  EXPECT_ERROR(Hdf5Episodes(file("short")), "short.hdf5: /episode_ends ends with 7, but there are 12 steps");
  EXPECT_ERROR(Hdf5Episodes(file("unordered")), "unordered.hdf5: /episode_ends has 3 behind 7");
  EXPECT_ERROR(Hdf5Episodes(file("late_start")), "late_start.hdf5: /episode_starts begins with 1");
}

/// Demos of 8 steps with a flag in the steps named.
std::string several_of(const char* flag, const std::vector<std::size_t>& steps) {
  OwnFolder folder;
  const fs::path path = folder.path() / "demos.hdf5";
  {
    Hdf5Writer writer(path);
    for (int demo = 0; demo < 2; ++demo) {
      const std::vector<float> actions(16, 1.0f);
      std::vector<float> flags(8, 0.0f);
      for (const std::size_t t : steps)
        if (demo == 1) flags[t] = 1;
      writer.begin_demo(8);
      writer.add("actions", make_view(actions.data(), {8, 2}), false);
      writer.add(flag, make_view(flags.data(), {8}), false);
    }
    writer.finish();
  }
  const Hdf5Episodes source(path);
  const std::string line = holds_several(source, {0, 1});
  EXPECT_EQ(inspect_text(source).find(line.empty() ? "hold several" : line) != std::string::npos, !line.empty());
  return line;
}

TEST_F(FlatHdf5, AnEpisodeWhoseOwnFlagsEndItBeforeItsLastStepIsTold) {
  EXPECT_NE(several_of("next.done", {2, 5, 7}).find("demos.hdf5: /data/demo_1: next.done is true in step 2 and 1 more"),
            std::string::npos);
  EXPECT_NE(several_of("is_first", {0, 4}).find("is_first is true in step 4, so it seems to hold several"),
            std::string::npos);
  EXPECT_NE(several_of("dones", {2, 5, 7}).find("dones is true in step 2 and 1 more"), std::string::npos);
  EXPECT_NE(several_of("terminals", {3, 7}).find("terminals is true in step 3, so it seems"), std::string::npos);
  for (const auto& [flag, steps] : std::vector<std::pair<const char*, std::vector<std::size_t>>>{
           {"next.done", {7}},
           {"is_last", {5, 6, 7}},
           {"is_first", {0}},
           {"timeouts", {}},
           {"dones", {3}},
           {"dones", {7}},
           {"dones", {2, 5, 6, 7}},
           {"terminals", {2, 4}}})  // of success, which comes and goes
    EXPECT_EQ(several_of(flag, steps), "") << flag;
}

/// A demo of 14 steps with these times, of which the first are at 0, 1, 2, ...
std::string break_of(const char* name, double unit, double from_step_12) {
  OwnFolder folder;
  const fs::path path = folder.path() / "demo.hdf5";
  {
    Hdf5Writer writer(path);
    const std::vector<float> actions(28, 1.0f);
    std::vector<double> times(14);
    for (std::size_t t = 0; t < 14; ++t) times[t] = unit * static_cast<double>(t < 12 ? t : t + from_step_12 - 12);
    writer.begin_demo(14);
    writer.add("actions", make_view(actions.data(), {14, 2}), false);
    writer.add(name, make_view(times.data(), {14}), false);
    writer.finish();
  }
  return holds_several(Hdf5Episodes(path), {0});
}

TEST_F(FlatHdf5, TimesThatRunBackOrLeapWithinAnEpisodeAreTold) {
  EXPECT_NE(
      break_of("timestamp", 0.02, 0).find("demo.hdf5: /data/demo_0: timestamp runs back from 0.22 to 0 in step 12"),
      std::string::npos)
      << break_of("timestamp", 0.02, 0);
  // An hour later, in seconds and in nanoseconds.
  EXPECT_NE(break_of("obs/stamp", 0.02, 180000)
                .find("obs/stamp leaps from 0.22 to 3600 in step 12, where it usually "
                      "goes on by 0.02, so it seems to hold several episodes, or a pause"),
            std::string::npos)
      << break_of("obs/stamp", 0.02, 180000);
  EXPECT_NE(break_of("time", 2e7, 180000), "");
  EXPECT_EQ(break_of("timestamp", 0.02, 12), "") << "even";
  EXPECT_EQ(break_of("timestamp", 0.02, 40), "") << "some steps are missing";
  EXPECT_EQ(break_of("phase", 0.02, 0), "") << "no time";
  EXPECT_NE(break_of("frame_index", 1, 3)
                .find("frame_index goes from 11 to 3 in step 12, so its rows seem to be in another "
                      "order than they were recorded; sort them by it"),
            std::string::npos)
      << break_of("frame_index", 1, 3);
  EXPECT_EQ(break_of("frame_index", 1, 0), "") << "it begins anew, which is another matter";
  EXPECT_EQ(break_of("frame_index", 1, 14), "") << "steps are left out";
}

// A policy that chose its own fields would learn without its camera.
TEST_F(FlatHdf5, WhatHoldsNoNumbersIsListedWithTheReason) {
  OwnFolder folder;
  const fs::path path = folder.path() / "demos.hdf5";
  {
    Hdf5Writer writer(path);
    const std::vector<float> actions(6, 1.0f);
    writer.begin_demo(3);
    writer.add("actions", make_view(actions.data(), {3, 2}), false);
    writer.add_texts("obs/images/front", {"a", "bc", "def"});
    writer.finish();
  }
  const std::vector<std::string> lines = Hdf5Episodes(path).left_out();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(
      lines[0].starts_with("obs/images/front: no array of numbers; texts are not read from HDF5, nor compressed "
                           "pictures of varying length: store uint8"))
      << lines[0];
}

TEST_F(FlatHdf5, AnArrayOfALaterHdf5IsNotMissedWithoutAWord) {
  // A library that opens it must read it.
  try {
    EXPECT_EQ(Hdf5Episodes(file("later")).size(), 4);
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("later.hdf5: dones is there, but HDF5 "), std::string::npos) << said;
    EXPECT_NE(said.find("write it again with libver='earliest'"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace cohort::data
