// The ways to train on the same samples give the same numbers; what the log says about the ranks.
#include <gtest/gtest.h>

#include "parallel/result_files.h"
#include "support/ranks.h"

namespace cohort::testing {
namespace {

// Relative; the demand of the issue. The ways differ in the order of float32 sums only.
constexpr double kOrderOfSums = 1e-5;

const std::string kModesWorker = test_binary("parallel_worker");

/// `what`: see modes() of parallel_worker.cpp.
void expect_three_ways_agree(const std::string& what) {
  const TemporaryFolder folder;
  for (const Outcome& result : run_ranks({kModesWorker, "modes_ddp:" + what, folder.path().string()}, 2))
    ASSERT_EQ(result.code, 0) << result.output();
  for (const char* scenario : {"modes_dp:", "modes_accumulated:"}) {
    Process worker({kModesWorker, scenario + what, folder.path().string()}, {});
    const Outcome result = worker.wait();
    ASSERT_EQ(result.code, 0) << result.output();
  }
  expect_same_training(folder.path().string() + "/modes_dp.0", folder.path().string() + "/modes_ddp.0", kOrderOfSums);
  expect_same_training(folder.path().string() + "/modes_accumulated.0", folder.path().string() + "/modes_ddp.0",
                       kOrderOfSums);
  EXPECT_TRUE(read_file(folder.path().string() + "/modes_ddp.0.state") ==
              read_file(folder.path().string() + "/modes_ddp.1.state"))
      << "other bits";
}

TEST(Modes, TwoReplicasTwoRanksAndAccumulatedHalvesAgreeWithSgd) {
  expect_three_ways_agree("sgd");
}
TEST(Modes, TwoReplicasTwoRanksAndAccumulatedHalvesAgreeWithAdam) {
  expect_three_ways_agree("adam");
}

// Dropout off; the draws of ProbSparse attention follow the samples.
TEST(Modes, TwoReplicasTwoRanksAndAccumulatedHalvesAgreeForInformer) {
  expect_three_ways_agree("informer");
}

TEST(Modes, HashNamesTheRankThatWentAstray) {
  for (const Outcome& result : run_ranks({kModesWorker, "differing_rank"}, 3)) {
    EXPECT_EQ(result.code, 0) << result.output();
    EXPECT_NE(result.output().find("parameters DIFFER: most ranks have "), std::string::npos) << result.output();
    EXPECT_NE(result.output().find("but rank 1 has "), std::string::npos) << result.output();
    EXPECT_EQ(result.output().find("rank 0 has"), std::string::npos) << result.output();
    EXPECT_EQ(result.output().find("rank 2 has"), std::string::npos) << result.output();
  }
}

TEST(Modes, EveryRankListsRankDeviceAndWorldSizeOfAll) {
  for (const Outcome& result : run_ranks({kModesWorker, "world"}, 2)) {
    EXPECT_EQ(result.code, 0) << result.output();
    EXPECT_NE(result.output().find("rank 0 on host "), std::string::npos) << result.output();
    EXPECT_NE(result.output().find("rank 1 on host "), std::string::npos) << result.output();
    const std::size_t first = result.output().find("): cpu, world_size=2");
    EXPECT_NE(first, std::string::npos) << result.output();
    EXPECT_NE(result.output().find("): cpu, world_size=2", first + 1), std::string::npos) << result.output();
  }
}

}  // namespace
}  // namespace cohort::testing
