// `cohort train` as ranks of a job that cannot work together: every rank says so and ends, and nothing is written.
#include <gtest/gtest.h>

#include "core/files.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

class TrainRanks : public ::testing::Test {
 protected:
  fs::path out() const { return folder_.path() / "out"; }
  /// `rows` rows of `columns` columns that vary.
  std::string table(const std::string& name, int columns, int rows = 400) const {
    std::string text;
    for (int column = 0; column < columns; ++column) text += (column > 0 ? ",c" : "c") + std::to_string(column);
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column)
        text += (column > 0 ? "," : "\n") + std::to_string((row * (column + 3) + row * row) % (7 + 2 * column));
    write_file_atomically(folder_.path() / name, text + "\n");
    return (folder_.path() / name).string();
  }
  /// The command of a rank, for a shell: `settings` may name $RANK.
  std::string command(const std::string& settings) const {
    return cohort_path() +
           " train regressor backend=cpu charts=false data.columns.n_targets=1 train.batch_size=32 output_dir=" +
           out().string() + " " + settings;
  }
  Outcome train_two(const std::string& settings) const {
    return run(launch({"--nproc_per_node=2", "--", "/bin/sh", "-c", "exec " + command(settings)}),
               {{"OMP_NUM_THREADS", "1"}});
  }
  void refused(const std::string& settings, const std::vector<std::string>& parts) const {
    const Outcome outcome = train_two(settings);
    EXPECT_NE(outcome.code, 0) << settings;
    for (const std::string& part : parts)
      EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.out << outcome.err;
    EXPECT_FALSE(fs::exists(out())) << "written before the ranks had agreed: " << settings;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainRanks, OtherSettingsOnOneRankAreNamedByTheFirstKeyThatDiffers) {
  const std::string data = "data.path=" + table("a.csv", 4);
  refused(data + " train.epochs=$((1 + RANK))",
          {"the ranks have different settings: train.epochs is 1 on rank 0, but 2 on rank 1"});
  refused(data + " model.hidden=$((64 + 64 * RANK))", {"model.hidden is 64 on rank 0, but 128 on rank 1"});
}

TEST_F(TrainRanks, OtherDataOnOneRankAreNoticed) {
  table("columns_0.csv", 4);
  table("columns_1.csv", 5);
  refused("data.path=" + folder_.path().string() + "/columns_$RANK.csv",
          {"model.inputs is 3 on rank 0, but 4 on rank 1"});
  table("rows_0.csv", 4);
  table("rows_1.csv", 4, 360);
  refused("data.path=" + folder_.path().string() + "/rows_$RANK.csv",
          {"number of training samples is 320 on rank 0, but 288 on rank 1"});
}

TEST_F(TrainRanks, AStrategyThatCannotBeMadeLeavesNoFolder) {
  refused("data.path=" + table("a.csv", 4) + " parallel.ddp.bucket_cap_mb=0", {"bucket sizes must be above 0 MiB"});
}

TEST_F(TrainRanks, WhatConcernsOneProcessMayDifferAndAShortRunSaysThatItsRanksAreEqual) {
  table("rank_0.csv", 4);
  table("rank_1.csv", 4);
  const Outcome outcome = train_two("data.path=" + folder_.path().string() +
                                    "/rank_$RANK.csv threads=$((1 + RANK)) loader.workers=$RANK name=rank_$RANK "
                                    "devices=cpu,cpu train.steps=3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "1 other device is not used: cpu")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "step 1: parameters ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "step 3: parameters ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, ", equal on 2 ranks")) << outcome.err;
  EXPECT_TRUE(fs::exists(out() / "rank_0" / "latest"));
  EXPECT_FALSE(fs::exists(out() / "rank_1")) << "rank 0 says where results go";
}

TEST_F(TrainRanks, TheTimeForFindingEachOtherIsASetting) {
  const std::string data = "data.path=" + table("a.csv", 4);
  refused(data + " dist.store_timeout_s=0", {"dist.store_timeout_s=0 must be between 1 and"});
  refused(data + " dist.collective_timeout_s=-1", {"dist.collective_timeout_s=-1 must be between 1 and"});
  const Outcome outcome = run({"/bin/sh", "-c", "exec " + command(data + " dist.store_timeout_s=1")},
                              {{"RANK", "1"},
                               {"WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", "1"},  // nobody's: below those that a user may take
                               {"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "rank 1 of 2 could not reach the store at 127.0.0.1:1")) << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "s at most")) << "of a longer wait it tells on the way\n" << outcome.err;
  EXPECT_FALSE(fs::exists(out()));
  const Outcome help = run({cohort_path(), "train", "regressor", "--help", "dist"});
  for (const char* setting : {"dist.store_timeout_s = 300", "dist.collective_timeout_s = 1800"})
    EXPECT_TRUE(contains(help.out, setting)) << help.out;
}

}  // namespace
}  // namespace cohort::testing
