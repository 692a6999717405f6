// Data parallelism on GPUs, against the same training on the CPU.
#include <gtest/gtest.h>

#include "parallel/result_files.h"
#include "support/ranks.h"

namespace cohort::testing {
namespace {

// Relative. A GPU adds up in another order, and its tanh and erf differ in the last bits; 50 steps amplify that.
constexpr double kTolerance = 1e-3;

const std::string kWorker = test_binary("parallel_worker");

int gpu_count() {
  Process worker({test_binary("dist_worker"), "cuda_devices"}, {});
  const Outcome result = worker.wait();
  if (result.code != 0) return 0;
  return std::stoi(result.output());
}

TEST(DdpOnGpu, TwoRanksMatchTwoRanksOnTheCpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  const TemporaryFolder folder;
  const ReservedPort reserved;
  std::vector<Process> workers;
  for (int rank = 0; rank < 2; ++rank) {
    auto variables = rank_variables(rank, 2, reserved.port);
    variables["NCCL_HOSTID"] = "host" + std::to_string(rank);  // two ranks may share one GPU
    workers.emplace_back(std::vector<std::string>{kWorker, "gpu_sgd", folder.path().string()}, variables);
  }
  for (Process& worker : workers) {
    const Outcome result = worker.wait();
    ASSERT_EQ(result.code, 0) << result.output();
  }
  for (const Outcome& result : run_ranks({kWorker, "sgd", folder.path().string()}, 2))
    ASSERT_EQ(result.code, 0) << result.output();
  for (const char* rank : {"0", "1"})
    expect_same_training(folder.path().string() + "/gpu_sgd." + rank, folder.path().string() + "/sgd." + rank,
                         kTolerance);
  EXPECT_EQ(read_file(folder.path().string() + "/gpu_sgd.0.state"),
            read_file(folder.path().string() + "/gpu_sgd.1.state"));
}

TEST(DataParallelOnGpu, AllGpusMatchAsManyReplicasOnTheCpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  const TemporaryFolder folder;
  Process worker({kWorker, "gpu_data_parallel", folder.path().string()}, {});
  const Outcome result = worker.wait();
  ASSERT_EQ(result.code, 0) << result.output();
  expect_same_training(folder.path().string() + "/dp_gpu.0", folder.path().string() + "/dp_cpu.0", kTolerance);
}

}  // namespace
}  // namespace cohort::testing
