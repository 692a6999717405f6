#include "rank/status.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/files.h"

namespace cohort::rank {
namespace {
namespace fs = std::filesystem;

Status example_status(int rank) {
  Status s;
  s.host = "node1";
  s.pid = 4711;
  s.started = 123456;
  s.rank = rank;
  s.world_size = 2;
  s.job = "regressor \"quoted\"";
  s.device = "cpu";
  s.phase = Phase::kTraining;
  s.step = 17;
  s.total_steps = 100;
  s.batches_per_epoch = 10;
  s.batch_size = 16;
  s.steps_per_s = 12.5;
  s.step_s = 0.08;
  s.data_s = 0.01;
  s.seconds_left = 6.64;
  s.host_bytes = 1ull << 40;
  s.time = 1795000000.25;
  return s;
}

TEST(RankStatus, WhatIsWrittenIsReadBackAndUnknownNumbersStayUnknown) {
  const Status s = example_status(1);
  const auto back = parse_status(to_json(s));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(s));
  EXPECT_EQ(back->job, s.job);
  EXPECT_EQ(back->host_bytes, 1ull << 40);
  EXPECT_DOUBLE_EQ(back->steps_per_s, 12.5);
  EXPECT_TRUE(std::isnan(back->exchange_s));
}

TEST(RankStatus, DamagedFilesAreLeftOut) {
  const TemporaryFolder folder("cohort-status-");
  StatusFile(folder.path() / "ranks", 1).write(example_status(1));
  StatusFile(folder.path() / "ranks", 0).write(example_status(0));
  std::ofstream(folder.path() / "ranks/rank_2.json") << "{\"rank\": 2, \"pid\"";
  std::ofstream(folder.path() / "ranks/rank_3.json") << R"({"rank": "x", "pid": 1, "state": 4})";
  std::ofstream(folder.path() / "ranks/rank_4.json") << "[]";
  const auto ranks = read_statuses(folder.path() / "ranks");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_TRUE(read_statuses(folder.path() / "nowhere").empty());
}

TEST(RankStatus, AFolderThatCannotBeMadeIsAReasonAndNoFailure) {
  const TemporaryFolder folder("cohort-status-");
  std::ofstream(folder.path() / "ranks") << "a file in the way";
  StatusFile file(folder.path() / "ranks", 0);
  EXPECT_NE(file.error().find("ranks"), std::string::npos);
  file.write(example_status(0));
}

}  // namespace
}  // namespace cohort::rank
