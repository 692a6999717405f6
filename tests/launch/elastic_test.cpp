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
                                      "--rdzv-endpoint=127.0.0.1:" + std::to_string(port_), "--rdzv-id=job"};
    flags.insert(flags.end(), more.begin(), more.end());
    flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
    return launch(flags);
  }
  std::map<std::string, std::string> secret(const std::string& text = "a secret of this very job") const {
    return {{"COHORT_JOB_SECRET", text}};
  }
  std::string said() const { return text_of(folder_.path() / "said"); }
  /// For a script: waits until so many lines were written for each attempt.
  std::string await_lines_of_attempt(int each) const {
    const std::string n = std::to_string(each);
    return "until [ \"$(wc -l < " + (folder_.path() / "said").string() + ")\" -ge $((" + n + " + " + n +
           " * TORCHELASTIC_RESTART_COUNT)) ]; do sleep 0.02; done; ";
  }
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
  Process first(agent("1:2", say() + "exec sleep 1000", {"--last-call=1"}), secret());
  ASSERT_TRUE(eventually([&] { return contains(said(), "attempt 0 rank 0 of 1 "); })) << first.err();
  {
    Process second(agent("1:2", say() + "exec sleep 1000", {"--last-call=1"}), secret());
    ASSERT_TRUE(eventually([&] {
      return contains(said(), "attempt 1 rank 0 of 2 ") && contains(said(), "attempt 1 rank 1 of 2 ");
    })) << first.err()
        << second.err();
    EXPECT_TRUE(contains(first.err(), "has joined")) << first.err();
    second.send(SIGKILL);
    ASSERT_TRUE(eventually([&] { return contains(said(), "attempt 2 rank 0 of 1 "); })) << first.err();
    EXPECT_TRUE(contains(first.err(), "has left, or its agent has died")) << first.err();
  }
  EXPECT_TRUE(contains(said(), " at 127.0.0.1 full 2 secret .\n")) << "the ranks are not told the secret\n" << said();
  first.send(SIGTERM);
  EXPECT_EQ(first.wait().code, 143) << first.err();
}

TEST_F(LaunchElastic, NodesThatFinishEndTheJobWellTogether) {
  Process a(agent("2:2", say() + "sleep 0.3", {"--rdzv-backend=c10d"}), secret());
  Process b(agent("2:2", say() + "sleep 1.2", {"--rdzv-backend=c10d"}), secret());
  EXPECT_EQ(a.wait().code, 0) << a.err();
  EXPECT_EQ(b.wait().code, 0) << b.err();
  EXPECT_EQ(lines_of(said()).size(), 2u) << said();
}

TEST_F(LaunchElastic, AFailureOnOneNodeRestartsAllAndTheLastOneEndsAllWithItsCode) {
  const std::string script =
      say() + "if [ $RANK = 1 ]; then " + await_lines_of_attempt(2) + "exit 7; fi; exec sleep 1000";
  Process a(agent("2:2", script, {"--rdzv-backend=c10d", "--max-restarts=1"}), secret());
  Process b(agent("2:2", script, {"--rdzv-backend=c10d", "--max-restarts=1"}), secret());
  EXPECT_EQ(a.wait().code, 7) << a.err();
  EXPECT_EQ(b.wait().code, 7) << b.err();
  EXPECT_EQ(lines_of(said()).size(), 4u) << "two nodes, two rounds\n" << said();
  EXPECT_TRUE(contains(a.err() + b.err(), "the job has ended: a rank of node ")) << a.err() << b.err();
}

TEST_F(LaunchElastic, OfNodesThatAreAlwaysAllThereEachMayHaveAnotherNumberOfRanks) {
  const auto node = [&](const std::string& ranks) {
    return launch({"--nnodes=2:2", "--rdzv-backend=c10d", "--nproc_per_node=" + ranks,
                   "--rdzv-endpoint=127.0.0.1:" + std::to_string(port_), "--rdzv-id=job", "--", "/bin/sh", "-c",
                   say()});
  };
  Process a(node("2"), secret()), b(node("1"), secret());
  EXPECT_EQ(a.wait().code, 0) << a.err();
  EXPECT_EQ(b.wait().code, 0) << b.err();
  ASSERT_EQ(lines_of(said()).size(), 3u) << said();
  for (const std::string& line : lines_of(said())) {
    EXPECT_TRUE(contains(line, " of 3 ")) << line;
    EXPECT_TRUE(contains(line, " full 3 ")) << "the whole job is what is there\n" << line;
  }
}

TEST_F(LaunchElastic, WhyARankFailedIsSaidAtOnceAlsoWhereTheOthersTakeLongAndTheHostIsLost) {
  const std::vector<std::string> flags = {"--rdzv-backend=c10d", "--max-restarts=1", "--recover=checkpoint",
                                          "--grace-period=60"};
  Process host(agent("2:2", say() + "trap '' TERM; while :; do sleep 1; done", flags), secret());
  ASSERT_TRUE(eventually([&] { return contains(host.err(), "waits for the others"); }, 60));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // so that it is the host
  Process other(agent("2:2", say() + "sleep 0.5; exit 7", flags), secret());
  ASSERT_TRUE(eventually([&] { return lines_of(said()).size() == 2; }, 60)) << host.err() << other.err();
  EXPECT_TRUE(eventually([&] { return contains(other.err(), "rank 1 failed first"); }, 10)) << other.err();
  host.send(SIGKILL);
  const Outcome outcome = other.wait(60);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "has closed the connection")) << outcome.err;
}

TEST_F(LaunchElastic, AMasterPortInUseOnTheHostIsSaidWithItsHolderAndARemedy) {
  const int taken = free_port();
  Process holder({"python3", "-c",
                  "import socket, time; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
                  "s.bind(('127.0.0.1', " +
                      std::to_string(taken) + ")); s.listen(); print('ready', flush=True); time.sleep(1000)"});
  ASSERT_TRUE(eventually([&] { return contains(holder.out(), "ready"); })) << holder.err();
  Process agent_with_it(agent("1:2", say(), {"--master-port=" + std::to_string(taken)}), secret());
  const Outcome outcome = agent_with_it.wait(60);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "port " + std::to_string(taken) + " is in use on this machine by pid " +
                                        std::to_string(holder.pid()) + " (python3"))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "pass --master_port=")) << outcome.err;
  EXPECT_EQ(said(), "");
}

TEST_F(LaunchElastic, TwoAgentsOfOneMachineShareTheMasterPortThatTheUserGave) {
  const std::vector<std::string> flags = {"--rdzv-backend=c10d", "--master-port=" + std::to_string(free_port())};
  Process a(agent("2:2", say(), flags), secret());
  Process b(agent("2:2", say(), flags), secret());
  EXPECT_EQ(a.wait().code, 0) << a.err();
  EXPECT_EQ(b.wait().code, 0) << b.err();
  EXPECT_EQ(lines_of(said()).size(), 2u) << said();
}

TEST_F(LaunchElastic, AnAgentThatStoodStillTakesNobodyForLostAfterwards) {
  Process only(agent("1:2", say() + "exec sleep 1000", {"--last-call=1"}), secret());
  ASSERT_TRUE(eventually([&] { return contains(said(), "attempt 0 rank 0 of 1 "); })) << only.err();
  only.send(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(6));
  only.send(SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_TRUE(alive(only.pid())) << only.err();
  EXPECT_EQ(lines_of(said()).size(), 1u) << said();
  only.send(SIGTERM);
  EXPECT_EQ(only.wait().code, 143) << only.err();
}

TEST_F(LaunchElastic, WithoutTheSecretNobodyJoinsAndWithoutAnySecretNothingBegins) {
  Process first(agent("1:2", say() + "exec sleep 1000", {"--last-call=1"}), secret());
  ASSERT_TRUE(eventually([&] { return contains(said(), "attempt 0 rank 0 of 1 "); })) << first.err();
  const Outcome stranger = run(agent("1:2", say() + "true"), secret("another secret, which is wrong"));
  EXPECT_EQ(stranger.code, 1);
  EXPECT_TRUE(contains(stranger.err, "its secret is another one")) << stranger.err;
  const Outcome none = run(agent("1:2", "true"), {{"COHORT_JOB_SECRET", ""}});
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.err, "openssl rand -hex 32")) << none.err;
  EXPECT_EQ(lines_of(said()).size(), 1u) << "the job of the first is not disturbed\n" << said();
  first.send(SIGTERM);
  first.wait();
}

TEST_F(LaunchElastic, WhenTheHostOfTheRendezvousDiesTheOthersEndAndSayWhy) {
  Process host(agent("2:2", say() + "exec sleep 1000", {"--rdzv-backend=c10d"}), secret());
  ASSERT_TRUE(eventually([&] { return contains(host.err(), "waits for the others"); })) << host.err();  // and hosts
  Process other(agent("2:2", say() + "exec sleep 1000", {"--rdzv-backend=c10d"}), secret());
  ASSERT_TRUE(eventually([&] { return lines_of(said()).size() == 2; })) << host.err() << other.err();
  host.send(SIGKILL);
  const Outcome outcome = other.wait();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(
      contains(outcome.err, "the rendezvous at 127.0.0.1:" + std::to_string(port_) + " has closed the connection"))
      << outcome.err;
}

/// Nodes whose numbers are given, with restarts: their agents meet at the port after the store's.
class LaunchNumbered : public LaunchElastic {
 protected:
  std::vector<std::string> node(int number, const std::string& script, std::vector<std::string> more = {}) const {
    std::vector<std::string> flags = {"--nnodes=2", "--node-rank=" + std::to_string(number), "--nproc_per_node=1",
                                      "--master-addr=127.0.0.1", "--master-port=" + std::to_string(port_)};
    flags.insert(flags.end(), more.begin(), more.end());
    flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
    return launch(flags);
  }
};

TEST_F(LaunchNumbered, AFailureRestartsAllNodesWithTheSameNumbersAndStore) {
  const std::string script = say() + "echo port $MASTER_PORT node $GROUP_RANK rank $RANK >> " +
                             (folder_.path() / "ports").string() +
                             "; if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then if [ $RANK = 1 ]; then " +
                             await_lines_of_attempt(2) + "exit 7; fi; exec sleep 1000; fi";
  Process second(node(1, script, {"--max-restarts=1"}), secret());  // who comes first does not matter
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Process first(node(0, script, {"--max-restarts=1"}), secret());
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
  for (const char* line :
       {"attempt 0 rank 0 of 2 ", "attempt 0 rank 1 of 2 ", "attempt 1 rank 0 of 2 ", "attempt 1 rank 1 of 2 "})
    EXPECT_TRUE(contains(said(), line)) << said();
  const std::string ports = text_of(folder_.path() / "ports");
  for (const char* rank : {"node 0 rank 0", "node 1 rank 1"})
    EXPECT_TRUE(contains(ports, "port " + std::to_string(port_) + " " + rank)) << ports;
  EXPECT_TRUE(contains(first.err(), "when a rank dies, a new process takes its place")) << first.err();
}

TEST_F(LaunchNumbered, ANodeThatIsLostIsWaitedForUntilTheSameCommandRunsThereAgain) {
  const std::string script = say() + "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 1000";
  Process first(node(0, script, {"--max-restarts=1"}), secret());
  {
    Process second(node(1, script, {"--max-restarts=1"}), secret());
    ASSERT_TRUE(eventually([&] { return lines_of(said()).size() == 2; })) << first.err() << second.err();
    second.send(SIGKILL);
    ASSERT_TRUE(eventually([&] { return contains(first.err(), "start the same command there again"); })) << first.err();
  }
  const Outcome third = run(node(7, "true", {"--max-restarts=1"}), secret());
  EXPECT_EQ(third.code, 2) << "there is no such node\n" << third.err;
  Process again(node(1, script, {"--max-restarts=1"}), secret());
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(again.wait().code, 0) << again.err();
  EXPECT_TRUE(contains(said(), "attempt 1 rank 1 of 2 ")) << said();
}

TEST_F(LaunchNumbered, WithoutRestartsTheBannerSaysThatADeadRankEndsTheJob) {
  Process first(node(0, "sleep 0.2"));
  Process second(node(1, "sleep 0.2"));
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
  for (const Process* agent : {&first, &second})
    EXPECT_TRUE(contains(agent->err(),
                         "when a rank dies, the job ends on all nodes; with --max-restarts=N and "
                         "--job-secret-file=F on each it goes on"))
        << agent->err();
}

TEST_F(LaunchNumbered, APortOfTheAgentsThatIsTakenIsNamed) {
  Process taken(node(0, "exec sleep 1000", {"--max-restarts=1"}), secret());
  ASSERT_TRUE(eventually([&] { return contains(taken.err(), "waits for the others"); })) << taken.err();
  // Its agents meet at port_ + 1; a job whose store is there cannot begin.
  std::vector<std::string> flags = {"--nnodes=2",
                                    "--node-rank=0",
                                    "--master-addr=127.0.0.1",
                                    "--master-port=" + std::to_string(port_ + 1),
                                    "--max-restarts=1",
                                    "--",
                                    "/bin/true"};
  const Outcome outcome = run(launch(flags), secret());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, std::to_string(port_ + 1) + " is in use")) << outcome.err;
}

/// One endpoint, and a file that says who hosts.
class LaunchStateFile : public LaunchElastic {
 protected:
  std::vector<std::string> node(const std::string& nodes, const std::string& script) const {
    return agent(nodes, script,
                 {"--rdzv-backend=c10d", "--rdzv-conf=state_file=" + (folder_.path() / "terms").string(),
                  "--max-restarts=1", "--last-call=200"});
  }
  /// Until both have begun, together.
  void both(Process& second) const {
    ASSERT_TRUE(eventually([&] { return lines_of(said()).size() == 2; })) << second.err();
    EXPECT_TRUE(contains(said(), "rank 0 of 2 ") && contains(said(), "rank 1 of 2 ")) << said();
  }
};

TEST_F(LaunchStateFile, TheHostsDeathLeavesTheOtherNodeToGoOn) {
  const std::string script = say() + "[ $WORLD_SIZE = 1 ] && [ $TORCHELASTIC_RESTART_COUNT -gt 0 ] || exec sleep 1000";
  Process host(node("1:2", script), secret());
  ASSERT_TRUE(eventually([&] { return contains(host.err(), "waits for the others"); })) << host.err();  // and hosts
  Process other(node("1:2", script), secret());
  both(other);
  host.send(SIGKILL);
  EXPECT_EQ(other.wait().code, 0) << other.err();
  EXPECT_TRUE(contains(said(), "rank 0 of 1 ")) << said();
  EXPECT_TRUE(contains(text_of(folder_.path() / "terms.3"), "\"ended\":0")) << "two hosts, then the end";
}

TEST_F(LaunchStateFile, AHostThatOnlyStoodStillFindsThatTheJobGoesOnWithoutIt) {
  const std::string script = say() + "exec sleep 1000";
  Process host(node("1:2", script), secret());
  ASSERT_TRUE(eventually([&] { return contains(host.err(), "waits for the others"); })) << host.err();  // and hosts
  Process other(node("1:2", script), secret());
  both(other);
  host.send(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return contains(said(), "rank 0 of 1 "); })) << other.err();
  host.send(SIGCONT);
  const Outcome outcome = host.wait();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the others go on elsewhere")) << outcome.err;
  EXPECT_TRUE(alive(other.pid())) << other.err();
  other.send(SIGTERM);
  EXPECT_EQ(other.wait().code, 143) << other.err();
}

}  // namespace
}  // namespace cohort::testing
