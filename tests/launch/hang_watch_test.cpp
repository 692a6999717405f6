// When a rank counts as hung: made-up clocks, and a real process for what /proc tells.
#include "launch/hang_watch.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process.h"

namespace cohort::launch {
namespace {

/// A rank that has made `steps` steps of `length` seconds by time steps * length.
RankPulse trained(int steps, double length, const HangLimits& limits) {
  RankPulse pulse;
  for (int i = 0; i <= steps; ++i) {
    const RankGlance glance{.beats = static_cast<std::uint64_t>(i + 1), .step = i, .phase = rank::Phase::kTraining};
    EXPECT_FALSE(pulse.hangs(glance, i * length, limits));
  }
  return pulse;
}

RankGlance silent(int step, double seconds, rank::Phase phase = rank::Phase::kTraining) {
  return {.beats = static_cast<std::uint64_t>(step + 1), .step = step, .phase = phase, .silent = seconds};
}

TEST(HangWatch, SilenceOfTenSecondsOrFiveMedianStepsIsAHang) {
  const HangLimits limits;
  RankPulse quick = trained(20, 0.1, limits);
  EXPECT_FALSE(quick.hangs(silent(20, 9.9), 12, limits));
  EXPECT_TRUE(quick.hangs(silent(20, 10.1), 12.2, limits));
  RankPulse slow = trained(20, 8.0, limits);
  EXPECT_FALSE(slow.hangs(silent(20, 39.0), 199, limits));
  EXPECT_TRUE(slow.hangs(silent(20, 41.0), 201, limits));
}

TEST(HangWatch, ATwoMinuteValidationASlowStartAndWaitingForDataAreNone) {
  const HangLimits limits;
  RankPulse pulse = trained(20, 0.1, limits);
  for (const rank::Phase phase :
       {rank::Phase::kValidation, rank::Phase::kCheckpoint, rank::Phase::kData, rank::Phase::kEnd})
    EXPECT_FALSE(pulse.hangs(silent(20, 120, phase), 122, limits)) << to_string(phase);
  EXPECT_TRUE(pulse.hangs(silent(20, 601, rank::Phase::kValidation), 603, limits));
  RankPulse first;
  EXPECT_FALSE(first.hangs(silent(0, 120, rank::Phase::kStart), 120, limits));
  EXPECT_FALSE(first.hangs(silent(1, 120), 240, limits)) << "nobody knows yet how long a step takes";
}

TEST(HangWatch, ARankThatWorksOrWantsAProcessorOrWaitsForOthersIsNoHang) {
  const HangLimits limits;
  RankPulse pulse = trained(20, 0.1, limits);
  RankGlance glance = silent(20, 50);
  glance.worked = 20;  // 40 % of the silence
  EXPECT_FALSE(pulse.hangs(glance, 52, limits)) << "an overloaded machine";
  glance.silent = 101;
  glance.worked = 101;
  EXPECT_TRUE(pulse.hangs(glance, 103, limits)) << "an endless loop";
  glance.waits_for_others = true;
  EXPECT_FALSE(pulse.hangs(glance, 103, limits));
}

TEST(HangWatch, WhoNeverBeatsIsNotWatchedAndZeroWatchesNobody) {
  RankPulse pulse;
  EXPECT_FALSE(pulse.hangs({.silent = 1e6}, 1e6, HangLimits{}));
  HangLimits off;
  off.least = 0;
  RankPulse trained_one = trained(20, 0.1, off);
  EXPECT_FALSE(trained_one.hangs(silent(20, 1e6), 1e6, off));
}

TEST(HangWatch, ProcTellsWhetherAProcessWorksOrIsStopped) {
  const pid_t busy = ::fork();
  if (busy == 0)
    for (;;) {
    }
  while (worked_seconds(busy) < 0.05) ::usleep(1000);
  EXPECT_EQ(process_state(busy), 'R');
  ::kill(busy, SIGSTOP);
  while (process_state(busy) != 'T') ::usleep(1000);
  // Stopped, it may still be on its way off the processor.
  EXPECT_TRUE(testing::eventually([&] {
    const double before = worked_seconds(busy);
    ::usleep(50000);
    return worked_seconds(busy) == before;
  }));
  ::kill(busy, SIGKILL);
  ::waitpid(busy, nullptr, 0);
  EXPECT_EQ(process_state(busy), '?');
}

}  // namespace
}  // namespace cohort::launch
