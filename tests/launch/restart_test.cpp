// Jobs that the agent starts again, and notices of schedulers that end one, with real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include "support/process.h"

namespace cohort::testing {
namespace {

std::vector<std::string> restarted(const std::string& script, std::vector<std::string> flags) {
  flags.insert(flags.begin(), "--nproc_per_node=2");
  flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
  return launch(flags);
}

TEST(LaunchRestart, AFailedJobIsStartedAgainAndKnowsItsAttempt) {
  TemporaryFolder folder;
  const std::string logs = (folder.path() / "logs").string();
  const Outcome outcome =
      run(restarted("echo \"attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS, port "
                    "$MASTER_PORT, job $TORCHELASTIC_RUN_ID\"\n"
                    "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0\n"
                    "said=" +
                        (folder.path() / "said").string() +
                        "$TORCHELASTIC_RESTART_COUNT\n"
                        "[ $RANK = 1 ] && { until [ -e $said ]; do sleep 0.02; done; exit 3; }\n"
                        "echo x > $said\nexec sleep 100",
                    {"--max-restarts=2", "--log-dir=" + logs}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::string first;
  for (const char* attempt : {"0", "1", "2"}) {
    const std::string text = text_of(logs + "/attempt_" + attempt + "/rank_0/stdout.log");
    const std::string begin = "attempt " + std::string(attempt) + " of 2, port ";
    ASSERT_TRUE(contains(text, begin)) << text;
    const std::string rest = text.substr(begin.size());
    if (first.empty()) first = rest;
    EXPECT_EQ(rest, first) << "port and job stay what they were";
  }
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "restart 1 of 2") && contains(outcome.err, "restart 2 of 2")) << outcome.err;
}

TEST(LaunchRestart, RestartsAreCountedForTheJobAndTheLastFailureIsReturned) {
  TemporaryFolder folder;
  const std::string starts = (folder.path() / "starts").string();
  // Another rank fails in each attempt.
  const Outcome outcome = run(restarted("echo x >> " + starts +
                                            "\n[ $RANK = $((TORCHELASTIC_RESTART_COUNT % 2)) ] || exec sleep 100\n"
                                            "until [ \"$(wc -l < " +
                                            starts +
                                            ")\" -ge $((2 + 2 * TORCHELASTIC_RESTART_COUNT)) ]; do sleep 0.02; done\n"
                                            "exit $((3 + TORCHELASTIC_RESTART_COUNT))",
                                        {"--max-restarts=1"}));
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(lines_of(text_of(starts)).size(), 4u) << "two ranks, two attempts";
}

TEST(LaunchRestart, BetweenRestartsItWaitsLongerAndLongerUntilItIsToldToStop) {
  TemporaryFolder folder;
  const std::string starts = (folder.path() / "starts").string();
  Process agent(restarted("echo x >> " + starts + "; exit 3", {"--max-restarts=20"}));
  ASSERT_TRUE(eventually([&] { return contains(agent.err(), "waiting for 2 s before the next start"); }));
  EXPECT_TRUE(contains(agent.err(), "waiting for 1 s before the next start")) << agent.err();
  agent.send(SIGTERM);
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_LE(lines_of(text_of(starts)).size(), 20u) << "of the attempts that were allowed, most were not made";
}

TEST(LaunchRestart, AJobThatWasToldToStopIsNotStartedAgain) {
  TemporaryFolder folder;
  const std::string starts = (folder.path() / "starts").string();
  Process agent(restarted("echo x >> " + starts + "; exec sleep 100", {"--max-restarts=3"}));
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(starts)).size() == 2; }));
  agent.send(SIGTERM);
  EXPECT_EQ(agent.wait().code, 143);
  EXPECT_EQ(lines_of(text_of(starts)).size(), 2u);
}

TEST(LaunchNotice, RanksThatEndByItWereStoppedAndDidNotFail) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    TemporaryFolder folder;
    const std::string ready = (folder.path() / "ready").string();
    const std::string name = signal == SIGUSR1 ? "USR1" : "USR2";
    // One ends by the signal itself; the other saves its work, and is not disturbed.
    Process agent(restarted("if [ $RANK = 0 ]; then trap 'sleep 0.7; echo saved; exit $((128 + " +
                                std::to_string(signal) + "))' " + name + "; fi; echo x >> " + ready +
                                "; while :; do sleep 0.05; done",
                            {"--max-restarts=3"}));
    ASSERT_TRUE(eventually([&] { return lines_of(text_of(ready)).size() == 2; }));
    agent.send(signal);
    const Outcome outcome = agent.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "saved")) << outcome.out;
    EXPECT_TRUE(contains(outcome.err, "stopped by SIG" + name)) << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "failed") || contains(outcome.err, "restart")) << outcome.err;
  }
}

TEST(LaunchNotice, AJobThatGoesOnAfterItEndsAsItWouldHave) {
  TemporaryFolder folder;
  const std::string ready = (folder.path() / "ready").string();
  Process agent(restarted("trap 'echo noted; n=1' USR1; echo x >> " + ready +
                              "; until [ \"$n\" ]; do sleep 0.05; done; [ $RANK = 1 ] && exit 7; exit 0",
                          {}));
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(ready)).size() == 2; }));
  agent.send(SIGUSR1);
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first")) << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
