// Real processes on this machine's loopback; see dist_worker.cpp for what the ranks do.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/ranks.h"

namespace cohort::testing {
namespace {

using namespace std::chrono_literals;

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

TEST(Group, NamesTheRankThatDiedWhenItHostedTheStore) {
  // The victim is rank 0 this time: roles are swapped by giving the killed process number 0.
  const ReservedPort reserved;
  auto variables = rank_variables(0, 2, reserved.port);
  variables["COHORT_STORE_FD"] = std::to_string(reserved.fd);
  Process host({kWorker, "late_rank"}, variables, {reserved.fd});
  Process other({kWorker, "late_rank"}, rank_variables(1, 2, reserved.port));
  ASSERT_TRUE(eventually([&] { return contains(host.out() + host.err(), "joined"); }, 60));
  ASSERT_TRUE(eventually([&] { return contains(other.out() + other.err(), "joined"); }, 60));
  host.send(SIGKILL);
  const Outcome result = other.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("rank 1 of 2: all_reduce failed because rank 0 (pid "), std::string::npos)
      << result.output();
  EXPECT_FALSE(contains(result.output(), "frame #")) << "a C++ stack of LibTorch's before it\n" << result.output();
  host.wait();
}

TEST(Group, SaysThatARankIsLate) {
  const auto results = run_ranks({kWorker, "late_rank"}, 2);
  EXPECT_EQ(results[0].code, 1) << results[0].output();
  EXPECT_NE(results[0].output().find("some rank did not take part within 1.0 s"), std::string::npos)
      << results[0].output();
}

TEST(Group, BarrierHasATimeLimitOfItsOwn) {
  const auto start = std::chrono::steady_clock::now();
  const ReservedPort reserved;
  auto variables = rank_variables(0, 2, reserved.port);
  variables["COHORT_STORE_FD"] = std::to_string(reserved.fd);
  Process early({kWorker, "late_barrier"}, variables, {reserved.fd});
  Process late({kWorker, "late_barrier"}, rank_variables(1, 2, reserved.port));
  const Outcome result = early.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("error: rank 0 of 2: barrier failed"), std::string::npos) << result.output();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 18s) << "the group's own limit is 20 s";
  late.wait();
}

TEST(Group, DestructorDoesNotWaitWhileAnExceptionPasses) {
  const auto start = std::chrono::steady_clock::now();
  const auto results = run_ranks({kWorker, "throws"}, 2);
  EXPECT_NE(results[0].output().find("error: rank 0 gives up"), std::string::npos) << results[0].output();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s) << "a barrier would have taken 20 s";
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
  EXPECT_NE(left_out.output().find("; it waited for 12 s in all"), std::string::npos) << left_out.output();
  const Outcome alone = host.wait();
  EXPECT_EQ(alone.code, 1);
  EXPECT_NE(alone.output().find("warning rank 0 of 2 hosts the store at 127.0.0.1:" + std::to_string(reserved.port) +
                                ", but not all ranks have joined it; waiting for 10 s by now, and for 12 s at most"),
            std::string::npos)
      << alone.output();
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
  const auto start = std::chrono::steady_clock::now();
  const ReservedPort reserved;
  auto variables = rank_variables(0, 2, reserved.port);
  variables["MASTER_ADDR"] = "192.0.2.1";  // RFC 5737: nobody's
  variables["LOCAL_WORLD_SIZE"] = "1";
  Process worker({kWorker, "collectives"}, variables);
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("MASTER_ADDR=192.0.2.1 is another machine's address"), std::string::npos)
      << result.output();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s) << "the store's own limit is 20 s";
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
