// Data parallelism on GPUs, against the same training on the CPU.
#include <gtest/gtest.h>

#include "dist/worker_process.h"
#include "parallel/result_files.h"

namespace cohort::test {
namespace {

// Relative. A GPU adds up in another order, and its tanh and erf differ in the last bits; 50 steps amplify that.
constexpr double kTolerance = 1e-3;

const std::string kWorker = test_binary("parallel_worker");

int gpu_count() {
  WorkerProcess worker({test_binary("dist_worker"), "cuda_devices"}, {});
  const WorkerResult result = worker.wait();
  if (result.exit_code != 0) return 0;
  return std::stoi(result.output);
}

TEST(DdpOnGpu, TwoRanksMatchTwoRanksOnTheCpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  const TemporaryFolder folder;
  const ReservedPort reserved;
  std::vector<WorkerProcess> workers;
  for (int rank = 0; rank < 2; ++rank) {
    auto variables = rank_variables(rank, 2, reserved.port);
    variables["NCCL_HOSTID"] = "host" + std::to_string(rank);  // two ranks may share one GPU
    workers.emplace_back(std::vector<std::string>{kWorker, "gpu_sgd", folder.path}, variables);
  }
  for (WorkerProcess& worker : workers) {
    const WorkerResult result = worker.wait();
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  for (const WorkerResult& result : run_ranks({kWorker, "sgd", folder.path}, 2))
    ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* rank : {"0", "1"})
    expect_same_training(folder.path + "/gpu_sgd." + rank, folder.path + "/sgd." + rank, kTolerance);
  EXPECT_EQ(read_file(folder.path + "/gpu_sgd.0.state"), read_file(folder.path + "/gpu_sgd.1.state"));
}

TEST(DataParallelOnGpu, AllGpusMatchAsManyReplicasOnTheCpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  const TemporaryFolder folder;
  WorkerProcess worker({kWorker, "gpu_data_parallel", folder.path}, {});
  const WorkerResult result = worker.wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  expect_same_training(folder.path + "/dp_gpu.0", folder.path + "/dp_cpu.0", kTolerance);
}

}  // namespace
}  // namespace cohort::test
