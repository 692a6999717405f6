// Real processes on this machine's loopback; see dist_worker.cpp for what the ranks do.
#include <atomic>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/ranks.h"

namespace cohort::testing {
namespace {

const std::string kWorker = test_binary("dist_worker");

TEST(Group, EveryCollectiveWithThreeRanks) {
  for (const Outcome& result : run_ranks({kWorker, "collectives"}, 3)) EXPECT_EQ(result.code, 0) << result.output();
}

TEST(Group, OneProcessNeedsNoNetwork) {
  Process worker({kWorker, "collectives"}, {});
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 0) << result.output();
}

TEST(Group, DestructorsWaitForTheSlowestRank) {
  for (const Outcome& result : run_ranks({kWorker, "destructor"}, 2)) {
    EXPECT_EQ(result.code, 0) << result.output();
    EXPECT_EQ(result.output().find("leaving the group"), std::string::npos) << result.output();
  }
}

TEST(Group, StoreListensOnLoopbackOnly) {
  // 127.0.0.1 as /proc/net/tcp writes it; with and without a socket from the launcher.
  const ReservedPort free;
  const int port = free.port;
  std::vector<Process> workers;
  for (int rank = 0; rank < 2; ++rank)
    workers.emplace_back(std::vector<std::string>{kWorker, "listeners"}, rank_variables(rank, 2, port));
  for (Process& worker : workers) {
    const Outcome result = worker.wait();
    EXPECT_EQ(result.code, 0) << result.output();
    const std::size_t at = result.output().find("listening ");
    if (at == std::string::npos) continue;
    EXPECT_EQ(result.output().substr(at, 10 + 9), "listening 0100007F:") << result.output();
    EXPECT_EQ(result.output().find("00000000:", at), std::string::npos) << result.output();
  }
}

TEST(Group, SharesAGlooGroupWithAPythonRankThatHostsTheStore) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch (COHORT_PYTHON)";
  const ReservedPort reserved;
  Process host({python, std::string(COHORT_SOURCE_DIR) + "/tests/dist/gloo_interop.py"},
               rank_variables(0, 2, reserved.port));
  Process other({kWorker, "python"}, rank_variables(1, 2, reserved.port));
  const Outcome first = host.wait();
  const Outcome second = other.wait();
  EXPECT_EQ(first.code, 0) << first.output();
  EXPECT_EQ(second.code, 0) << second.output();
}

TEST(Group, SharesAGlooGroupWithAPythonRankWhenItHostsTheStore) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch (COHORT_PYTHON)";
  const ReservedPort reserved;
  auto variables = rank_variables(0, 2, reserved.port);
  variables["COHORT_STORE_FD"] = std::to_string(reserved.fd);
  Process host({kWorker, "python"}, variables, {reserved.fd});
  Process other({python, std::string(COHORT_SOURCE_DIR) + "/tests/dist/gloo_interop.py"},
                rank_variables(1, 2, reserved.port));
  const Outcome first = host.wait();
  const Outcome second = other.wait();
  EXPECT_EQ(first.code, 0) << first.output();
  EXPECT_EQ(second.code, 0) << second.output();
}

TEST(Group, RunsUnderTorchrunWhoseAgentHostsTheStore) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch (COHORT_PYTHON)";
  Process torchrun({python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python", kWorker,
                    "collectives"},
                   {});
  const Outcome result = torchrun.wait();
  EXPECT_EQ(result.code, 0) << result.output();
  EXPECT_NE(result.output().find("joined rank 1 of 2 (local rank 1 of 2), from RANK and WORLD_SIZE"), std::string::npos)
      << result.output();
}

TEST(Group, MeetsAgainWhenTorchrunStartsTheJobAgain) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch (COHORT_PYTHON)";
  Process torchrun({python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1",
                    "--no-python", kWorker, "dies_once"},
                   {});
  const Outcome result = torchrun.wait();
  EXPECT_EQ(result.code, 0) << result.output();
  EXPECT_NE(result.output().find("done"), std::string::npos) << result.output();
}

TEST(Group, NamesTheRankThatDied) {
  const auto results = run_ranks({kWorker, "died_peer"}, 2);
  EXPECT_EQ(results[1].code, 128 + SIGKILL);
  EXPECT_EQ(results[0].code, 1) << results[0].output();
  EXPECT_NE(results[0].output().find("first: rank 0 of 2: all_reduce failed because rank 1 (pid "), std::string::npos)
      << results[0].output();
  EXPECT_NE(results[0].output().find(") has ended; its own output tells why"), std::string::npos)
      << results[0].output();
  EXPECT_NE(results[0].output().find("error: rank 0: all_reduce is not possible any more, since the group has failed"),
            std::string::npos)
      << results[0].output();
}

TEST(Group, ARankOfSeveralOutlivesASocketOrPipeThatNobodyReads) {
  for (const Outcome& result : run_ranks({kWorker, "broken_pipe"}, 2)) {
    EXPECT_EQ(result.code, 0) << result.output();
    EXPECT_TRUE(contains(result.output(), "the pipe is broken")) << result.output();
  }
}

/// Two ranks of a scenario in which rank 1 is late, until it is let go.
class LateRank {
 public:
  explicit LateRank(const std::string& scenario) {
    for (int rank = 0; rank < 2; ++rank) {
      auto variables = rank_variables(rank, 2, reserved_.port);
      if (rank == 0) variables["COHORT_STORE_FD"] = std::to_string(reserved_.fd);
      ranks_.emplace_back(std::vector<std::string>{kWorker, scenario, file_.string()}, variables,
                          rank == 0 ? std::vector<int>{reserved_.fd} : std::vector<int>{});
    }
  }
  Process& first() { return ranks_[0]; }
  /// What became of rank 1.
  Outcome let_go() {
    std::ofstream(file_) << "go";
    return ranks_[1].wait();
  }
  void until_both_joined() const {
    for (const Process& rank : ranks_)
      ASSERT_TRUE(eventually([&] { return contains(rank.out() + rank.err(), "joined"); })) << rank.out() << rank.err();
  }

 private:
  const TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "go";
  const ReservedPort reserved_;
  std::vector<Process> ranks_;
};

TEST(Group, NamesTheRankThatDiedWhenItHostedTheStore) {
  LateRank job("waiting_rank");
  job.until_both_joined();
  job.first().send(SIGKILL);
  job.first().wait();
  const Outcome result = job.let_go();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("rank 1 of 2: all_reduce failed because rank 0 (pid "), std::string::npos)
      << result.output();
  EXPECT_FALSE(contains(result.output(), "frame #")) << "a C++ stack of LibTorch's before it\n" << result.output();
}

TEST(Group, SaysThatARankIsLate) {
  LateRank job("late_rank");
  const Outcome result = job.first().wait();
  EXPECT_EQ(result.code, 1) << result.output();
  EXPECT_NE(result.output().find("all_reduce failed: some rank did not take part within "), std::string::npos)
      << result.output();
  job.let_go();
}

TEST(Group, BarrierHasATimeLimitOfItsOwn) {
  LateRank job("late_barrier");
  const Outcome result = job.first().wait();  // the group's own limit is longer than that
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("error: rank 0 of 2: barrier failed: some rank did not take part within "),
            std::string::npos)
      << result.output();
  job.let_go();
}

TEST(Group, DestructorDoesNotWaitWhileAnExceptionPasses) {
  LateRank job("throws");
  const Outcome result = job.first().wait();
  EXPECT_NE(result.output().find("error: rank 0 gives up"), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find("leaving the group"), std::string::npos) << "it waited in vain\n" << result.output();
  EXPECT_EQ(job.let_go().code, 0);
}

TEST(Group, UnreachableStoreNamesAddressTimeAndRemedy) {
  const ReservedPort reserved;  // nobody listens there
  Process worker({kWorker, "unreachable"}, rank_variables(1, 2, reserved.port));
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("rank 1 of 2 could not reach the store at 127.0.0.1:" + std::to_string(reserved.port) +
                                 " for "),
            std::string::npos)
      << result.output();
  EXPECT_NE(result.output().find("Connection refused"), std::string::npos) << result.output();
  EXPECT_NE(result.output().find("Check that rank 0 is running"), std::string::npos) << result.output();
}

TEST(Group, UnknownHostOfTheStoreIsNamed) {
  auto variables = rank_variables(1, 2, 29500);
  variables["MASTER_ADDR"] = "no-such-host.invalid";
  variables["LOCAL_RANK"] = "0";
  variables["LOCAL_WORLD_SIZE"] = "1";
  Process worker({kWorker, "unreachable"}, variables);
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("the name 'no-such-host.invalid' cannot be resolved"), std::string::npos)
      << result.output();
}

TEST(Group, RankZeroSaysThatOthersDidNotCome) {
  const ReservedPort reserved;
  auto variables = rank_variables(0, 3, reserved.port);
  variables["COHORT_STORE_FD"] = std::to_string(reserved.fd);
  Process worker({kWorker, "missing_rank"}, variables, {reserved.fd});
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("not all ranks joined it within 2.0 s"), std::string::npos) << result.output();
  EXPECT_NE(result.output().find("1/3 clients joined"), std::string::npos) << result.output();
}

TEST(Group, WhoWaitsForTheStoreSaysSoBeforeTheTimeIsOver) {
  const ReservedPort silent, reserved;
  Process other({kWorker, "patient"}, rank_variables(1, 2, silent.port));  // nobody listens there
  auto variables = rank_variables(0, 2, reserved.port);
  variables["COHORT_STORE_FD"] = std::to_string(reserved.fd);
  Process host({kWorker, "patient"}, variables, {reserved.fd});  // nobody else comes
  const Outcome left_out = other.wait();
  EXPECT_EQ(left_out.code, 1);
  const std::size_t warning = left_out.output().find("warning rank 1 of 2 could not reach the store at 127.0.0.1:" +
                                                     std::to_string(silent.port));
  ASSERT_NE(warning, std::string::npos) << left_out.output();
  EXPECT_NE(left_out.output().find("Connection refused", warning), std::string::npos) << left_out.output();
  EXPECT_NE(left_out.output().find("s by now, and for 12 s at most", warning), std::string::npos) << left_out.output();
  const std::size_t end = left_out.output().find("; it waited for ");
  ASSERT_NE(end, std::string::npos) << left_out.output();
  EXPECT_NE(left_out.output().find(" s in all", end), std::string::npos) << left_out.output();
  const Outcome alone = host.wait();
  EXPECT_EQ(alone.code, 1);
  const std::size_t of_host =
      alone.output().find("warning rank 0 of 2 hosts the store at 127.0.0.1:" + std::to_string(reserved.port) +
                          ", but not all ranks have joined it; waiting for ");
  ASSERT_NE(of_host, std::string::npos) << alone.output();
  EXPECT_NE(alone.output().find("s by now, and for 12 s at most", of_host), std::string::npos) << alone.output();
}

TEST(Group, AnotherServiceOnThePortIsNamedWithoutStacksOfLibTorch) {
  const ReservedPort taken;
  ASSERT_EQ(listen(taken.fd, 16), 0);
  std::atomic<bool> over{false};
  std::thread service([&] {  // hangs up on everybody
    while (!over) {
      pollfd waiting{taken.fd, POLLIN, 0};
      if (poll(&waiting, 1, 50) > 0) ::close(accept(taken.fd, nullptr, nullptr));
    }
  });
  Process worker({kWorker, "missing_rank"}, rank_variables(1, 2, taken.port));
  const Outcome result = worker.wait();
  over = true;
  service.join();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("did not get through to a store there"), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find("frame #"), std::string::npos) << result.output();
}

TEST(Group, RankZeroRefusesAnAddressOfAnotherMachine) {
  const ReservedPort reserved;
  auto variables = rank_variables(0, 2, reserved.port);
  variables["MASTER_ADDR"] = "192.0.2.1";  // RFC 5737: nobody's
  variables["LOCAL_WORLD_SIZE"] = "1";
  Process worker({kWorker, "collectives"}, variables);
  const Outcome result = worker.wait();  // the store's own limit is longer than that
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("MASTER_ADDR=192.0.2.1 is another machine's address"), std::string::npos)
      << result.output();
}

TEST(Group, PortInUseIsNamedAndAFreeOneOffered) {
  const ReservedPort taken;
  ASSERT_EQ(listen(taken.fd, 1), 0);
  Process worker({kWorker, "collectives"}, rank_variables(0, 2, taken.port));
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("port " + std::to_string(taken.port) + " (MASTER_PORT) is in use"), std::string::npos)
      << result.output();
  // The offer is taken up: a job on that port works.
  const std::size_t at = result.output().find("set MASTER_PORT=");
  ASSERT_NE(at, std::string::npos) << result.output();
  const int offered = std::stoi(result.output().substr(at + 16));
  EXPECT_NE(offered, taken.port);
  std::vector<Process> workers;
  for (int rank = 0; rank < 2; ++rank)
    workers.emplace_back(std::vector<std::string>{kWorker, "collectives"}, rank_variables(rank, 2, offered));
  for (Process& w : workers) {
    const Outcome second = w.wait();
    EXPECT_EQ(second.code, 0) << second.output();
  }
}

}  // namespace
}  // namespace cohort::testing
