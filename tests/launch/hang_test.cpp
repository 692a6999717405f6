// Ranks that hang, and ranks that only look so, with real processes.
#include <gtest/gtest.h>

#include "support/process.h"

namespace cohort::testing {
namespace {

std::vector<std::string> beating(const std::string& mode, const std::string& argument,
                                 std::vector<std::string> flags = {"--hang-timeout=1"}) {
  flags.insert(flags.begin(), "--nproc_per_node=2");
  flags.insert(flags.end(), {"--", COHORT_BEATING_WORKER, mode, argument});
  return launch(flags);
}

TEST(LaunchHang, TheRankThatHangsIsNamedWithItsStackAndTheJobEnds) {
  TemporaryFolder folder;
  const Outcome outcome = run(beating("hang", (folder.path() / "waits").string()));
  EXPECT_EQ(outcome.code, 137) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 (pid")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "hangs: silent for")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "while others wait for it in a collective: 0")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "[rank 1] native stack of the main thread:")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "pause")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first of 2 ranks; the job was stopped")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "why       it hung: silent for")) << outcome.err;
}

TEST(LaunchRecovery, RanksThatEndByThemselvesAtOneStepAreOneFailureOfTheJob) {
  // At once, so that both exits are seen together, and one after the other.
  for (const char* later : {"0", "0.5"}) {
    const TemporaryFolder folder;
    const Outcome outcome = run(launch({"--nproc_per_node=3", "--max-restarts=1", "--recover=memory", "--",
                                        COHORT_BEATING_WORKER, "fail", later, folder.path().string()}));
    EXPECT_EQ(outcome.code, 0) << later << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "recovery 1 of 1")) << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "failed at the same step before")) << outcome.err;
  }
}

TEST(LaunchHang, AStoppedProcessIsNamedAsSuch) {
  Process job(beating("busy", "1000"));
  const std::string before = "[rank 1] pid ";
  ASSERT_TRUE(eventually([&] { return contains(job.out(), before); })) << job.err();
  const std::string said = job.out();
  const pid_t pid = std::atoi(said.c_str() + said.find(before) + before.size());
  ::kill(pid, SIGSTOP);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 137) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "(pid " + std::to_string(pid) + ") hangs: silent for")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the process is stopped")) << outcome.err;
}

TEST(LaunchHang, ALongValidationIsNoHang) {
  const Outcome outcome = run(beating("validation", "2"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "hangs")) << outcome.err;
}

TEST(LaunchHang, AStepThatTakesUnusuallyLongIsNoHangWhileTheRankWorks) {
  const Outcome outcome = run(beating("busy", "2"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "hangs")) << outcome.err;
}

TEST(LaunchHang, ARankWhoseOutputNobodyTakesForAWhileDoesNotHang) {
  for (const char* ranks : {"1", "2"}) {  // one writes straight to the pipe, of several the launcher does
    const Outcome outcome = run({"/bin/sh", "-c",
                                 "(" + cohort_path() + " launch --hang-timeout=1 --nproc_per_node=" + ranks + " -- " +
                                     COHORT_BEATING_WORKER + " talk 0; echo code $? >&2) | (sleep 5; exec cat)"},
                                {}, 100);
    EXPECT_TRUE(contains(outcome.err, "code 0\n")) << ranks << ": " << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "hangs")) << ranks << ": " << outcome.err;
  }
}

TEST(LaunchHang, ZeroWatchesNobodyAndAProgramThatNeverBeatsIsNotWatched) {
  const Outcome off = run(beating("validation", "1", {"--hang-timeout=0", "--hang-timeout-elsewhere=0.2"}));
  EXPECT_EQ(off.code, 0) << off.err;
  const Outcome silent = run(launch({"--nproc_per_node=2", "--hang-timeout=0.2", "--", "/bin/sleep", "1"}));
  EXPECT_EQ(silent.code, 0) << silent.err;
}

}  // namespace
}  // namespace cohort::testing
