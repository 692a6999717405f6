// The CUDA plugin: loaded in a process of its own, since it stays.
#include <gtest/gtest.h>

#include "support/ranks.h"

namespace cohort::testing {
namespace {

const std::string kWorker = test_binary("dist_worker");

int gpu_count() {
  Process worker({kWorker, "cuda_devices"}, {});
  const Outcome result = worker.wait();
  return result.code == 0 ? std::stoi(result.output().substr(result.output().find(" CUDA devices") - 1)) : 0;
}

TEST(CudaPlugin, LoadsOnDemandAndCountsDevicesWithAReasonForNone) {
  Process worker({kWorker, "cuda_devices"}, {});
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 0) << result.output();
  EXPECT_NE(result.output().find(" CUDA devices"), std::string::npos) << result.output();
}

TEST(CudaPlugin, HidesDevicesThatTheMaskHides) {
  Process worker({kWorker, "cuda_devices"}, {{"CUDA_VISIBLE_DEVICES", ""}});
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 0) << result.output();
  EXPECT_NE(result.output().find("0 CUDA devices "), std::string::npos) << result.output();
}

TEST(CudaPlugin, MissingFileIsNamed) {
  Process worker({kWorker, "cuda_devices"}, {{"COHORT_PLUGIN_DIR", "/nowhere"}});
  const Outcome result = worker.wait();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output().find("error: this build has no CUDA support: /nowhere/libcohort_cuda.so does not exist"),
            std::string::npos)
      << result.output();
}

TEST(Nccl, EveryCollectiveWithTwoRanks) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  // Two ranks may share the one GPU of a machine when NCCL takes them for two hosts.
  const ReservedPort reserved;
  std::vector<Process> workers;
  for (int rank = 0; rank < 2; ++rank) {
    auto variables = rank_variables(rank, 2, reserved.port);
    variables["NCCL_HOSTID"] = "host" + std::to_string(rank);
    workers.emplace_back(std::vector<std::string>{kWorker, "gpu_collectives"}, variables);
  }
  for (Process& worker : workers) {
    const Outcome result = worker.wait();
    EXPECT_EQ(result.code, 0) << result.output();
  }
}

TEST(Nccl, TwoRanksOnOneGpuAreNamed) {
  if (gpu_count() == 0) GTEST_SKIP() << "no CUDA device";
  for (const Outcome& result : run_ranks({kWorker, "gpu_collectives"}, 2, {{"CUDA_VISIBLE_DEVICES", "0"}})) {
    EXPECT_EQ(result.code, 1);
    EXPECT_NE(result.output().find("error: ranks 0 and 1 both use GPU-"), std::string::npos) << result.output();
  }
}

}  // namespace
}  // namespace cohort::testing
