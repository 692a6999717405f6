// `cohort data inspect|stats|convert` as a user runs it.
#include <cstdlib>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "data/fixture_folder.h"
#include "support/command.h"

namespace cohort::data {
namespace {

using test::CommandOutcome;

CommandOutcome run(const std::string& arguments) {
  return test::run_command(std::string(std::getenv("COHORT_BIN")) + "/cohort data " + arguments);
}

TEST(DataCli, InspectPrintsTheSchemaAndWritesASheet) {
  OwnFolder folder;
  const auto sheet = folder.path() / "sheet.png";
  const CommandOutcome outcome =
      run(format("inspect {} --out {} --episodes 2", fixture("arm").string(), sheet.string()));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* part :
       {"5 episodes, 20 steps", "observation/pose", "float64", "24 x 32 x 3", "episode_metadata/file_path"})
    EXPECT_NE(outcome.output.find(part), std::string::npos) << part << "\n" << outcome.output;
  EXPECT_TRUE(read_file(sheet).starts_with("\x89PNG"));
}

TEST(DataCli, EpisodesAreChosenByNumberAndByRule) {
  OwnFolder folder;
  const std::string arm = fixture("arm").string(), sheet = (folder.path() / "sheet.png").string();
  const CommandOutcome one = run(format("inspect {} --episode 3 --out {}", arm, sheet));
  EXPECT_EQ(one.code, 0) << one.output;
  EXPECT_NE(one.output.find("1 of 5 episodes are chosen"), std::string::npos) << one.output;
  const CommandOutcome some =
      run(format("inspect {} --filter 'metadata_contains(episode_metadata/file_path, /success/)'", arm));
  EXPECT_NE(some.output.find("4 of 5 episodes are chosen"), std::string::npos) << some.output;
  const CommandOutcome none = run(format("inspect {} --episode 7", arm));
  EXPECT_NE(none.code, 0);
  EXPECT_NE(none.output.find("no episode 7 among the 5 chosen, whose numbers are 0 to 4"), std::string::npos)
      << none.output;
}

TEST(DataCli, ASetIsSplitAndEpisodesAreDeletedInItsOwnFormat) {
  OwnFolder folder;
  const std::string arm = fixture("arm").string(), out = folder.path().string();
  const CommandOutcome less = run(format("delete-episodes {} --episodes 0 2-3 --out {}/less", arm, out));
  ASSERT_EQ(less.code, 0) << less.output;
  EXPECT_NE(less.output.find(": 2 episodes, "), std::string::npos) << less.output;
  EXPECT_EQ(run(format("inspect {}/less", out)).code, 0);
  const CommandOutcome wrong = run(format("delete-episodes {} --episodes 9 --out {}/wrong", arm, out));
  EXPECT_NE(wrong.output.find("has no episode 9: its 5 episodes are 0 to 4"), std::string::npos) << wrong.output;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "wrong"));
  const CommandOutcome commas = run(format("delete-episodes {} --episodes 0,2-3 --out {}/commas", arm, out));
  EXPECT_NE(commas.output.find(": 2 episodes, "), std::string::npos) << commas.output;
  // A suffix says the format, and the second path is where it goes.
  const CommandOutcome converted = run(format("convert {} {}/copy.hdf5", fixture("libero.hdf5").string(), out));
  ASSERT_EQ(converted.code, 0) << converted.output;
  std::filesystem::copy_file(fixture("root_groups.h5"), folder.path() / "arm.hdf5");
  const CommandOutcome parts = run(format("split {0}/arm.hdf5 --parts train=0.7 val=rest --out {0}/parts", out));
  ASSERT_EQ(parts.code, 0) << parts.output;
  EXPECT_NE(parts.output.find("train.hdf5: 2 episodes, "), std::string::npos) << parts.output;
  EXPECT_NE(parts.output.find("val.hdf5: 1 episodes, "), std::string::npos) << parts.output;
  const CommandOutcome percents = run(format("split {0}/arm.hdf5 --parts a=34% b=66% --out {0}/percents", out));
  EXPECT_NE(percents.output.find("b.hdf5: 2 episodes, "), std::string::npos) << percents.output;
  // Nothing is written where the parts cannot be as they are wanted.
  for (const auto& [wanted, fault] : {std::pair{"a=0.8 b=0.3", "the fractions are 1.1 together, more than all"},
                                      std::pair{"a=1 a=rest", "--parts names a twice"}}) {
    const CommandOutcome refused = run(format("split {0}/arm.hdf5 --parts {1} --out {0}/refused", out, wanted));
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_NE(refused.output.find(fault), std::string::npos) << refused.output;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "refused"));
  }
  const CommandOutcome merged = run(format("merge {0} {0} --out {1}/both", arm, out));
  EXPECT_NE(merged.output.find("merge joins LeRobot sets; make it one with `cohort data convert"), std::string::npos)
      << merged.output;
}

TEST(DataCli, StatsPrintTheReferencesLayout) {
  const CommandOutcome outcome =
      run(format("stats {} --cache never --action 'action[0:3]' --action 'action[3:6] | euler_xyz->rotation_6d' "
                 "--filter 'metadata_contains(episode_metadata/file_path, /success/)'",
                 fixture("arm").string()));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto json = parse_json<nlohmann::json>(outcome.output);
  EXPECT_EQ(json["action"]["mean"].size(), 9u);
  EXPECT_EQ(json["num_trajectories"], 4);
  for (const char* name : {"mean", "std", "max", "min"}) EXPECT_TRUE(json["action"].contains(name));
}

TEST(DataCli, WhatAMaskChoseIsSaid) {
  OwnFolder folder;
  const std::string path = fixture("robomimic.hdf5").string();
  for (const std::string& arguments :
       {"inspect " + path + " --index-cache never", "stats " + path + " --cache never",
        format("convert {} --split train --to rlds --out {}", path, folder.path().string())}) {
    const CommandOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("mask/train: 1 of 2 demos"), std::string::npos) << arguments << outcome.output;
  }
}

TEST(DataCli, AutoIsTheSameSplitInAllSubcommands) {
  OwnFolder folder;
  const CommandOutcome outcome = run(
      format("convert {} --split auto --to rlds --out {}", fixture("robomimic.hdf5").string(), folder.path().string()));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("mask/train: 1 of 2 demos"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(": 1 episodes"), std::string::npos) << outcome.output;
}

TEST(DataCli, AFileIsConvertedWholeUnlessASplitIsNamed) {
  OwnFolder folder;
  const CommandOutcome outcome =
      run(format("convert {} --to rlds --out {}", fixture("robomimic.hdf5").string(), folder.path().string()));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("2 episodes"), std::string::npos) << outcome.output;
}

TEST(DataCli, WhichDemosWereCountedIsSaidAndHowToCountOthers) {
  OwnFolder folder;
  const std::string path = fixture("robomimic.hdf5").string(), whole = folder.path().string();
  for (const std::string& arguments : {"inspect " + path, "stats " + path + " --cache never"}) {
    const CommandOutcome own = run(arguments), all = run(arguments + " --split all");
    EXPECT_NE(own.output.find("mask/train: 1 of 2 demos (split auto; the split all takes every demo)"),
              std::string::npos)
        << own.output;
    EXPECT_NE(all.output.find("all 2 demos, whatever masks there are: the split auto, training's, takes 1"),
              std::string::npos)
        << all.output;
  }
  const CommandOutcome converted = run(format("convert {} --to rlds --out {}", path, whole));
  EXPECT_NE(converted.output.find("all 2 demos, whatever masks there are: the split auto, training's, takes 1"),
            std::string::npos)
      << converted.output;
  const CommandOutcome without = run("inspect " + fixture("libero.hdf5").string());
  EXPECT_EQ(without.output.find("split auto"), std::string::npos) << "a file without masks" << without.output;
}

TEST(DataCli, AMisspeltWordIsNamedWithItsNeighbour) {
  const CommandOutcome flag = run("inspect x.hdf5 --on_corupt skip"), verb = run("inspekt x.hdf5");
  EXPECT_EQ(flag.code, 2) << flag.output;
  EXPECT_NE(flag.output.find("is `--on-corrupt` meant?"), std::string::npos) << flag.output;
  EXPECT_EQ(verb.code, 2) << verb.output;
  EXPECT_NE(verb.output.find("one of inspect, stats, convert, merge, split, delete-episodes, rename, retask, embed, "
                             "two-link-arm, not 'inspekt'"),
            std::string::npos)
      << verb.output;
}

TEST(DataCli, WithoutArrowALeRobotSetIsRefusedWithTheRemedy) {
  OwnFolder empty;
  const CommandOutcome outcome =
      test::run_command(format("COHORT_PLUGIN_DIR={} {}/cohort data inspect {}", empty.path().string(),
                               std::getenv("COHORT_BIN"), fixture("lerobot/v3").string()));
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("this build reads no Parquet"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("install the wheel pyarrow (scripts/setup)"), std::string::npos) << outcome.output;
  const CommandOutcome written =
      test::run_command(format("COHORT_PLUGIN_DIR={0} {1}/cohort data convert {2} --to lerobot --out {0}/set",
                               empty.path().string(), std::getenv("COHORT_BIN"), fixture("libero.hdf5").string()));
  EXPECT_EQ(written.code, 1) << written.output;
  EXPECT_NE(written.output.find("this build reads no Parquet and writes none"), std::string::npos) << written.output;
  EXPECT_TRUE(std::filesystem::is_empty(empty.path()));
}

TEST(DataCli, ALeRobotSetIsWrittenAndWhatWasChosenIsSaid) {
  if (const CommandOutcome arrow = run("inspect " + fixture("lerobot/v3").string()); arrow.code != 0)
    GTEST_SKIP() << arrow.output;
  OwnFolder folder;
  const std::string set = (folder.path() / "set").string(), source = fixture("libero.hdf5").string();
  const CommandOutcome written =
      run(format("convert {} --to lerobot --out {} --images image --state obs/ee_pos "
                 "'obs/gripper_states[0:1]' --task 'open it' --fps 20",
                 source, set));
  EXPECT_EQ(written.code, 0) << written.output;
  EXPECT_NE(written.output.find("2 episodes, 10 steps"), std::string::npos) << written.output;
  EXPECT_NE(written.output.find("float64 is written as float32"), std::string::npos) << written.output;
  const CommandOutcome read = run("inspect " + set);
  EXPECT_EQ(read.code, 0) << read.output;
  for (const char* part : {"observation.state", "observation.images.agentview_rgb", "2 episodes, 10 steps"})
    EXPECT_NE(read.output.find(part), std::string::npos) << part << "\n" << read.output;
  const CommandOutcome again = run(format("convert {} --to lerobot --out {}", source, set));
  EXPECT_EQ(again.code, 1) << again.output;
  EXPECT_NE(again.output.find("exists already and is not empty"), std::string::npos) << again.output;
}

TEST(DataCli, ConvertWritesWhatInspectReads) {
  OwnFolder folder;
  const CommandOutcome converted = run(
      format("convert {} --to rlds --out {} --name libero", fixture("libero.hdf5").string(), folder.path().string()));
  EXPECT_EQ(converted.code, 0) << converted.output;
  const CommandOutcome inspected = run(format("inspect {}", (folder.path() / "libero").string()));
  EXPECT_NE(inspected.output.find("2 episodes, 10 steps"), std::string::npos) << inspected.output;
}

TEST(DataCli, AWrongPathAndAWrongOptionSaySo) {
  const CommandOutcome missing = run("inspect /nowhere/at/all");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.output.find("there is no file or folder /nowhere/at/all"), std::string::npos) << missing.output;
  EXPECT_EQ(run("inspect --sheet x").code, 2);
}

}  // namespace
}  // namespace cohort::data
