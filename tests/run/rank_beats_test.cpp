#include "run/rank_beats.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

#include "core/files.h"
#include "run/host_watch.h"

namespace cohort::run {
namespace {

rank::Status only_status(const std::filesystem::path& run) {
  const auto all = rank::read_statuses(run / rank::kRanksFolder);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? rank::Status() : all.front();
}

TEST(RankBeats, SayWhatARankDoesAndHowItsStepsAreSpent) {
  const TemporaryFolder run("cohort-beats-");
  RankBeats beats(run.path(), {.rank = 0, .world_size = 1, .job = "regressor", .device = "cpu", .batch_size = 16});
  const rank::BeatObserver observe = beats.observer();
  int measured = 0;
  rank::Totals totals;
  const auto measure = [&] {
    ++measured;
    return totals;
  };
  EXPECT_TRUE(rank::read_statuses(run.path() / rank::kRanksFolder).empty());
  const auto begin = std::chrono::steady_clock::now();
  observe({.phase = rank::Phase::kTraining, .step = 0, .total_steps = 100, .batches_per_epoch = 7}, measure);
  EXPECT_EQ(only_status(run.path()).phase, rank::Phase::kStart) << "no step has told how long they take";
  EXPECT_TRUE(std::isnan(only_status(run.path()).steps_per_s));

  totals = {.steps = 20, .samples = 320, .seconds = 4, .data_s = 1, .exchange_s = 0.5};
  observe({.phase = rank::Phase::kTraining, .step = 20, .total_steps = 100, .batches_per_epoch = 7}, measure);
  EXPECT_EQ(only_status(run.path()).phase, rank::Phase::kTraining);
  observe({.phase = rank::Phase::kData, .step = 20, .total_steps = 100, .batches_per_epoch = 7}, measure);
  observe({.phase = rank::Phase::kTraining, .step = 21, .total_steps = 100, .batches_per_epoch = 7}, measure);
  const bool within_a_second = std::chrono::steady_clock::now() - begin < std::chrono::seconds(1);
  if (within_a_second) EXPECT_EQ(measured, 2) << "at most one beat a second costs more than a look at the clock";
  EXPECT_EQ(only_status(run.path()).step, measured == 2 ? 20 : 21);

  observe({.phase = rank::Phase::kCheckpoint, .step = 20, .total_steps = 100, .batches_per_epoch = 7}, measure);
  const rank::Status s = only_status(run.path());
  EXPECT_EQ(s.phase, rank::Phase::kCheckpoint);
  EXPECT_EQ(s.step, 20);
  EXPECT_EQ(s.batches_per_epoch, 7);
  EXPECT_DOUBLE_EQ(s.steps_per_s, 5);
  EXPECT_DOUBLE_EQ(s.samples_per_s, 80);
  EXPECT_DOUBLE_EQ(s.step_s, 0.2);
  EXPECT_DOUBLE_EQ(s.data_s, 0.05);
  EXPECT_DOUBLE_EQ(s.exchange_s, 0.025);
  EXPECT_DOUBLE_EQ(s.seconds_left, 16);
  beats.end(rank::Phase::kFinished);
  EXPECT_EQ(only_status(run.path()).phase, rank::Phase::kFinished);
}

TEST(RankBeats, ARankThatLeavesWithoutAnEndHasFailed) {
  const TemporaryFolder run("cohort-beats-");
  {
    RankBeats beats(run.path(), {.rank = 0});
    beats.observer()({.phase = rank::Phase::kTraining}, [] { return rank::Totals(); });
  }
  EXPECT_EQ(only_status(run.path()).phase, rank::Phase::kFailed);
}

TEST(RankBeats, RanksOfALargerJobBeforeAreForgotten) {
  const TemporaryFolder run("cohort-beats-");
  for (int rank = 0; rank < 3; ++rank) {
    RankBeats beats(run.path(), {.rank = rank, .world_size = 3});
    beats.observer()({.phase = rank::Phase::kTraining}, [] { return rank::Totals(); });
  }
  EXPECT_EQ(rank::read_statuses(run.path() / rank::kRanksFolder).size(), 3u);
  RankBeats beats(run.path(), {.rank = 0, .world_size = 1});
  beats.observer()({.phase = rank::Phase::kTraining}, [] { return rank::Totals(); });
  EXPECT_EQ(only_status(run.path()).rank, 0);
}

TEST(HostWatch, ReadsMemoryAndLoadAtOnceAndProcessorsFromTheSecondReadingOn) {
  HostWatch watch;
  const HostLoad first = watch.read();
  EXPECT_FALSE(first.busy_cores.has_value());
  EXPECT_GT(first.memory.value_or(0), 0);
  EXPECT_TRUE(first.load.has_value());
}

}  // namespace
}  // namespace cohort::run
