// What a PPO run tells those who watch it, with ranks whose exchange takes as long as the test says.
#include "rl/run_watch.h"

#include <chrono>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "core/files.h"
#include "run/rank_beats.h"

namespace cohort::rl {
namespace {

using namespace std::chrono_literals;

class ScriptedRanks final : public Ranks {
 public:
  double exchange_seconds() const override { return exchanged; }
  double exchanged = 7;  // before the run
};

TEST(RunWatch, AnIterationIsDividedIntoComputingExchangingAndSaving) {
  ScriptedRanks ranks;
  RunWatch watch(ranks, at::kCPU, {.samples = 512, .total = 10}, {});
  watch.begin(4);
  {
    const auto saving = watch.saving();
    std::this_thread::sleep_for(30ms);
    ranks.exchanged += 0.010;  // of the 30 ms
  }
  std::this_thread::sleep_for(20ms);
  ranks.exchanged += 0.005;
  const auto before = std::chrono::steady_clock::now();
  const IterationTimes first = watch.iterated(5);
  EXPECT_EQ(first.ranks, 1);
  EXPECT_GE(first.whole, 0.050);
  EXPECT_NEAR(first.exchange, 0.015, 1e-12);
  EXPECT_GE(first.checkpoint, 0.020 - 1e-9);
  EXPECT_LT(first.checkpoint, first.whole - first.exchange);
  EXPECT_GE(first.compute, 0.015 - 1e-9);
  EXPECT_NEAR(first.compute + first.exchange + first.checkpoint, first.whole, 1e-12);
  EXPECT_EQ(first.least_compute, first.compute);
  EXPECT_GT(first.memory, 1 << 20);
  const IterationTimes second = watch.iterated(6);
  EXPECT_EQ(second.exchange, 0) << "what is behind it does not count again";
  EXPECT_EQ(second.checkpoint, 0);
  EXPECT_LE(second.whole, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
  const std::vector<rank::Totals> all = watch.of_all_ranks();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].steps, 2) << "of this process";
  EXPECT_EQ(all[0].samples, 2 * 512);
  EXPECT_NEAR(all[0].exchange_s, 0.015, 1e-12);
  EXPECT_TRUE(std::isnan(all[0].data_s));
}

TEST(RunWatch, TheStatusFileSaysWhatTheRankDoes) {
  const TemporaryFolder folder("cohort-watch-");
  ScriptedRanks ranks;
  const auto status = [&] {
    const auto all = rank::read_statuses(folder.path() / rank::kRanksFolder);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? rank::Status() : all.front();
  };
  {
    run::RankBeats beats(folder.path(), {.rank = 0, .world_size = 1, .job = "ppo", .device = "cpu", .batch_size = 32});
    RunWatch watch(ranks, at::kCPU, {.samples = 512, .total = 10}, beats.observer());
    watch.begin(0);
    EXPECT_EQ(status().phase, rank::Phase::kStart) << "no iteration has told how long they take";
    {
      const auto saving = watch.saving();
      EXPECT_EQ(status().phase, rank::Phase::kCheckpoint);
    }
    EXPECT_EQ(status().phase, rank::Phase::kStart);
    std::this_thread::sleep_for(10ms);
    watch.iterated(1);
    const rank::Status s = status();
    EXPECT_EQ(s.phase, rank::Phase::kTraining);
    EXPECT_EQ(s.step, 1);
    EXPECT_EQ(s.total_steps, 10);
    EXPECT_NEAR(s.samples_per_s, 512 * s.steps_per_s, 1e-6 * s.samples_per_s);
    EXPECT_TRUE(std::isnan(s.data_s));
    EXPECT_EQ(s.exchange_s, 0);
    EXPECT_GT(s.seconds_left, 9 * 0.010 * 0.9);
    { const auto saving = watch.saving(); }
    EXPECT_EQ(status().phase, rank::Phase::kTraining);
    watch.end();
    beats.end(rank::Phase::kStopped);
    EXPECT_EQ(status().phase, rank::Phase::kStopped);
  }
  {
    run::RankBeats beats(folder.path(), {.rank = 0});
    RunWatch watch(ranks, at::kCPU, {.samples = 512, .total = 10}, beats.observer());
    watch.begin(1);
  }
  EXPECT_EQ(status().phase, rank::Phase::kFailed) << "it left without an end";
}

}  // namespace
}  // namespace cohort::rl
