// Agents whose nodes come and go, as processes of one machine that meet at a port of it.
#include <gtest/gtest.h>

#include "support/process.h"

namespace cohort::testing {
namespace {

class LaunchElastic : public ::testing::Test {
 protected:
  std::vector<std::string> agent(const std::string& nodes, const std::string& script,
                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> flags = {"--nnodes=" + nodes, "--nproc_per_node=1",
                                      "--rdzv-endpoint=127.0.0.1:" + std::to_string(port_), "--rdzv-id=job",
                                      "--last-call=1"};
    flags.insert(flags.end(), more.begin(), more.end());
    flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
    return launch(flags);
  }
  std::map<std::string, std::string> secret(const std::string& text = "a secret of this very job") const {
    return {{"COHORT_JOB_SECRET", text}};
  }
  std::string said() const { return text_of(folder_.path() / "said"); }
  /// Every rank writes a line about itself.
  std::string say() const {
    return "echo \"attempt $TORCHELASTIC_RESTART_COUNT rank $RANK of $WORLD_SIZE at $MASTER_ADDR full "
           "$COHORT_FULL_WORLD_SIZE secret $COHORT_JOB_SECRET.\" >> " +
           (folder_.path() / "said").string() + "; ";
  }

  TemporaryFolder folder_;
  int port_ = free_port();
};

TEST_F(LaunchElastic, TheLastNodesGoOnWhenAnAgentIsKilledAndANewOneJoins) {
  Process first(agent("1:2", say() + "exec sleep 1000"), secret());
  ASSERT_TRUE(eventually([&] { return contains(said(), "attempt 0 rank 0 of 1 "); }, 60)) << first.err();
  {
    Process second(agent("1:2", say() + "exec sleep 1000"), secret());
    ASSERT_TRUE(eventually(
        [&] { return contains(said(), "attempt 1 rank 0 of 2 ") && contains(said(), "attempt 1 rank 1 of 2 "); }, 60))
        << first.err() << second.err();
    EXPECT_TRUE(contains(first.err(), "has joined")) << first.err();
    second.send(SIGKILL);
    ASSERT_TRUE(eventually([&] { return contains(said(), "attempt 2 rank 0 of 1 "); }, 60)) << first.err();
    EXPECT_TRUE(contains(first.err(), "has left, or its agent has died")) << first.err();
  }
  EXPECT_TRUE(contains(said(), " at 127.0.0.1 full 2 secret .\n")) << "the ranks are not told the secret\n" << said();
  first.send(SIGTERM);
  EXPECT_EQ(first.wait(60).code, 143) << first.err();
}

TEST_F(LaunchElastic, NodesThatFinishEndTheJobWellTogether) {
  Process a(agent("2:2", say() + "sleep 0.3", {"--rdzv-backend=c10d"}), secret());
  Process b(agent("2:2", say() + "sleep 1.2", {"--rdzv-backend=c10d"}), secret());
  EXPECT_EQ(a.wait().code, 0) << a.err();
  EXPECT_EQ(b.wait().code, 0) << b.err();
  EXPECT_EQ(lines_of(said()).size(), 2u) << said();
}

TEST_F(LaunchElastic, AFailureOnOneNodeRestartsAllAndTheLastOneEndsAllWithItsCode) {
  const std::string script = say() + "if [ $RANK = 1 ]; then sleep 0.2; exit 7; fi; exec sleep 1000";
  Process a(agent("2:2", script, {"--rdzv-backend=c10d", "--max-restarts=1"}), secret());
  Process b(agent("2:2", script, {"--rdzv-backend=c10d", "--max-restarts=1"}), secret());
  EXPECT_EQ(a.wait().code, 7) << a.err();
  EXPECT_EQ(b.wait().code, 7) << b.err();
  EXPECT_EQ(lines_of(said()).size(), 4u) << "two nodes, two rounds\n" << said();
  EXPECT_TRUE(contains(a.err() + b.err(), "the job has ended: a rank of node ")) << a.err() << b.err();
}

TEST_F(LaunchElastic, WithoutTheSecretNobodyJoinsAndWithoutAnySecretNothingBegins) {
  Process first(agent("1:2", say() + "exec sleep 1000"), secret());
  ASSERT_TRUE(eventually([&] { return contains(said(), "attempt 0 rank 0 of 1 "); }, 60)) << first.err();
  const Outcome stranger = run(agent("1:2", say() + "true"), secret("another secret, which is wrong"));
  EXPECT_EQ(stranger.code, 1);
  EXPECT_TRUE(contains(stranger.err, "its secret is another one")) << stranger.err;
  const Outcome none = run(agent("1:2", "true"), {{"COHORT_JOB_SECRET", ""}});
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.err, "openssl rand -hex 32")) << none.err;
  EXPECT_EQ(lines_of(said()).size(), 1u) << "the job of the first is not disturbed\n" << said();
  first.send(SIGTERM);
  first.wait(60);
}

TEST_F(LaunchElastic, WhenTheHostOfTheRendezvousDiesTheOthersEndAndSayWhy) {
  Process host(agent("2:2", say() + "exec sleep 1000", {"--rdzv-backend=c10d"}), secret());
  ASSERT_TRUE(eventually([&] { return contains(host.err(), "waits for the others"); }, 60));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // so that it is the host
  Process other(agent("2:2", say() + "exec sleep 1000", {"--rdzv-backend=c10d"}), secret());
  ASSERT_TRUE(eventually([&] { return lines_of(said()).size() == 2; }, 60)) << host.err() << other.err();
  host.send(SIGKILL);
  const Outcome outcome = other.wait(60);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(
      contains(outcome.err, "the rendezvous at 127.0.0.1:" + std::to_string(port_) + " has closed the connection"))
      << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
