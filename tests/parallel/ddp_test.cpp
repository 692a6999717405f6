// DistributedDataParallel in real processes, against PyTorch's own on the same weights and batches.
#include <gtest/gtest.h>
#include <signal.h>

#include "parallel/result_files.h"
#include "support/ranks.h"

namespace cohort::testing {
namespace {

// Relative; the demand of the issue. The two sides run the same kernels, so that what remains is the order of sums.
constexpr double kTolerance = 1e-5;

const std::string kWorker = test_binary("parallel_worker");

void expect_all_ok(const std::vector<Outcome>& results) {
  for (const Outcome& result : results) ASSERT_EQ(result.code, 0) << result.output();
}

/// Runs the scenarios with two ranks of ours and two of PyTorch's, and compares every rank's losses and final state.
void expect_same_as_python(const std::vector<std::string>& scenarios) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch (COHORT_PYTHON)";
  std::string list;
  for (const std::string& scenario : scenarios) list += (list.empty() ? "" : ",") + scenario;
  const TemporaryFolder ours;
  const TemporaryFolder theirs;
  expect_all_ok(run_ranks({kWorker, list, ours.path().string()}, 2));
  const ReservedPort reserved;
  std::vector<Process> peers;
  for (int rank = 0; rank < 2; ++rank)
    peers.emplace_back(
        std::vector<std::string>{python, std::string(COHORT_SOURCE_DIR) + "/tests/parallel/ddp_reference.py", list,
                                 theirs.path().string()},
        rank_variables(rank, 2, reserved.port));
  for (Process& peer : peers) {
    const Outcome result = peer.wait();
    ASSERT_EQ(result.code, 0) << result.output();
  }
  for (const std::string& scenario : scenarios) {
    SCOPED_TRACE(scenario);
    for (int rank = 0; rank < 2; ++rank) {
      const std::string name = "/" + scenario + "." + std::to_string(rank);
      expect_same_training(ours.path().string() + name, theirs.path().string() + name, kTolerance);
    }
    // The evidence that gradients were averaged: both ranks end with the same bits, though they began with different
    // weights. Running statistics of BatchNorm are each rank's own after the last step.
    if (scenario != "norm") {
      EXPECT_TRUE(read_file(ours.path().string() + "/" + scenario + ".0.state") ==
                  read_file(ours.path().string() + "/" + scenario + ".1.state"))
          << "other bits";
    }
  }
}

// One test: PyTorch takes most of each process's time to begin with.
TEST(DdpAgainstPython, EveryWayOfAveragingHasItsLossesAndWeights) {
  expect_same_as_python({"sgd", "adam", "gloo",                                 // fifty steps
                         "bucket_view", "small_buckets", "buckets_by_arrival",  // in both orders
                         "no_sync", "norm",                                     // buffers follow rank 0
                         "find_unused", "static_graph",                         // other parameters on each rank
                         "join", "join_remaining",                              // unequal numbers of steps
                         "fp16", "bf16"});                                      // what travels
}

TEST(Ddp, AccumulationWithoutSynchronisationEqualsOneBigBatch) {
  const TemporaryFolder folder;
  expect_all_ok(run_ranks({kWorker, "accumulate", folder.path().string()}, 2));
  for (const char* rank : {"0", "1"}) {
    expect_same_training(folder.path().string() + "/accumulated." + rank, folder.path().string() + "/whole." + rank,
                         kTolerance);
  }
}

TEST(Ddp, RunsUnderTorchrun) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch (COHORT_PYTHON)";
  const TemporaryFolder folder;
  Process torchrun({python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python", kWorker,
                    "sgd", folder.path().string()},
                   {});
  const Outcome result = torchrun.wait();
  ASSERT_EQ(result.code, 0) << result.output();
  const TemporaryFolder plain;
  expect_all_ok(run_ranks({kWorker, "sgd", plain.path().string()}, 2));
  EXPECT_TRUE(read_file(folder.path().string() + "/sgd.0.state") == read_file(plain.path().string() + "/sgd.0.state"))
      << "other bits";
  EXPECT_TRUE(read_file(folder.path().string() + "/sgd.1.state") == read_file(plain.path().string() + "/sgd.0.state"))
      << "other bits";
}

TEST(Ddp, DifferentShapeOnOneRankIsNamedOnEveryRank) {
  for (const Outcome& result : run_ranks({kWorker, "different_shape"}, 2)) {
    EXPECT_EQ(result.code, 1);
    EXPECT_NE(
        result.output().find(
            "the ranks' models differ: parameter 'a.weight' is Float (24, 12) on rank 1, but Float (48, 12) on rank 0"),
        std::string::npos)
        << result.output();
  }
}

TEST(Ddp, MissingLayerOnOneRankIsNamedOnEveryRank) {
  for (const Outcome& result : run_ranks({kWorker, "missing_layer"}, 2)) {
    EXPECT_EQ(result.code, 1);
    EXPECT_NE(result.output().find("the ranks' models differ: where rank 0 has the parameter 'extra.weight'"),
              std::string::npos)
        << result.output();
  }
}

TEST(Ddp, UnusedParameterIsNamedWithItsRemedy) {
  for (const Outcome& result : run_ranks({kWorker, "unused_parameter"}, 2)) {
    EXPECT_EQ(result.code, 1) << result.output();
    EXPECT_NE(result.output().find("did not depend on these parameters: 'extra.weight', 'extra.bias'."),
              std::string::npos)
        << result.output();
    EXPECT_NE(result.output().find("find_unused_parameters"), std::string::npos) << result.output();
  }
}

TEST(Ddp, DeadRankIsNamed) {
  const auto results = run_ranks({kWorker, "died_peer"}, 2);
  EXPECT_EQ(results[1].code, 128 + SIGKILL);
  EXPECT_EQ(results[0].code, 1);
  EXPECT_NE(results[0].output().find("because rank 1 (pid "), std::string::npos) << results[0].output();
}

TEST(Ddp, JoinCanStopAllRanksWhenOneEnds) {
  const auto results = run_ranks({kWorker, "early_termination"}, 2);
  EXPECT_EQ(results[0].code, 1);
  EXPECT_NE(results[0].output().find("rank 0 has no more data"), std::string::npos) << results[0].output();
  EXPECT_EQ(results[1].code, 1);
  EXPECT_NE(results[1].output().find("another rank has no more data"), std::string::npos) << results[1].output();
  EXPECT_EQ(results[1].output().find("step 2"), std::string::npos) << results[1].output();
}

TEST(Ddp, NumbersOfTheLogAreReducedOverRanks) {
  expect_all_ok(run_ranks({kWorker, "strategy_numbers"}, 2));
}

TEST(Ddp, TheWaitForASlowRankIsToldHoweverGradientsTravel) {
  expect_all_ok(run_ranks({kWorker, "slow_rank"}, 2));
}

}  // namespace
}  // namespace cohort::testing
