// The CUDA plugin: loaded in a process of its own, since it stays.
#include <gtest/gtest.h>

#include "dist/worker_process.h"

namespace cohort::test {
namespace {

const std::string kWorker = test_binary("dist_worker");

int gpu_count() {
  WorkerProcess worker({kWorker, "cuda_devices"}, {});
  const WorkerResult result = worker.wait();
  return result.exit_code == 0 ? std::stoi(result.output.substr(result.output.find(" CUDA devices") - 1)) : 0;
}

TEST(CudaPlugin, LoadsOnDemandAndCountsDevicesWithAReasonForNone) {
  WorkerProcess worker({kWorker, "cuda_devices"}, {});
  const WorkerResult result = worker.wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find(" CUDA devices"), std::string::npos) << result.output;
}

TEST(CudaPlugin, HidesDevicesThatTheMaskHides) {
  WorkerProcess worker({kWorker, "cuda_devices"}, {{"CUDA_VISIBLE_DEVICES", ""}});
  const WorkerResult result = worker.wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("0 CUDA devices "), std::string::npos) << result.output;
}

TEST(CudaPlugin, MissingFileIsNamed) {
  WorkerProcess worker({kWorker, "cuda_devices"}, {{"COHORT_PLUGIN_DIR", "/nowhere"}});
  const WorkerResult result = worker.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("error: this build has no CUDA support: /nowhere/libcohort_cuda.so does not exist"),
            std::string::npos)
      << result.output;
}

TEST(Nccl, EveryCollectiveWithTwoRanks) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  // Two ranks may share the one GPU of a machine when NCCL takes them for two hosts.
  const ReservedPort reserved;
  std::vector<WorkerProcess> workers;
  for (int rank = 0; rank < 2; ++rank) {
    auto variables = rank_variables(rank, 2, reserved.port);
    variables["NCCL_HOSTID"] = "host" + std::to_string(rank);
    workers.emplace_back(std::vector<std::string>{kWorker, "gpu_collectives"}, variables);
  }
  for (WorkerProcess& worker : workers) {
    const WorkerResult result = worker.wait();
    EXPECT_EQ(result.exit_code, 0) << result.output;
  }
}

TEST(Nccl, TwoRanksOnOneGpuAreNamed) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  for (const WorkerResult& result : run_ranks({kWorker, "gpu_collectives"}, 2, {{"CUDA_VISIBLE_DEVICES", "0"}})) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.output.find("error: ranks 0 and 1 both use GPU-"), std::string::npos) << result.output;
  }
}

}  // namespace
}  // namespace cohort::test
