// `cohort devices`, and the GPUs that `cohort launch` gives its ranks, on a machine whose driver is
// tests/core/fake_driver.
#include <algorithm>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kFour =
    "NVIDIA H100|GPU-00000000-d72c-4106-c12f-20bd9faed9f0|0000:19:00.0|80|9.0;"
    "NVIDIA H100|GPU-11111111-d72c-4106-c12f-20bd9faed9f1|0000:3b:00.0|80|9.0;"
    "NVIDIA H100|GPU-22222222-d72c-4106-c12f-20bd9faed9f2|0000:4c:00.0|80|9.0;"
    "NVIDIA H100|GPU-33333333-d72c-4106-c12f-20bd9faed9f3|0000:5d:00.0|80|9.0";

Variables four_gpus(Variables more = {}) {
  more["LD_LIBRARY_PATH"] = std::getenv("COHORT_FAKE_DRIVER");
  more["COHORT_FAKE_GPUS"] = kFour;
  return more;
}

/// What each of two ranks sees of the named variables.
std::vector<std::string> seen_by_ranks(std::vector<std::string> flags, const Variables& variables) {
  flags.insert(flags.begin(), "-q");
  flags.insert(flags.end(),
               {"--", "/bin/sh", "-c",
                "echo $LOCAL_RANK/${CUDA_VISIBLE_DEVICES-unset}/$TI_VISIBLE_DEVICE/$QD_VISIBLE_DEVICE/$EGL_DEVICE_ID/"
                "$MUJOCO_EGL_DEVICE_ID"});
  const Outcome outcome = run(launch(flags), variables);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  auto lines = lines_of(outcome.out);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(CliDevices, WithoutAGpuTheReasonIsPrintedAndTheCodeIsThree) {
  // Libraries of the driver's names without a GPU behind them: the test also holds on a machine that has one.
  const Outcome outcome = run({cohort_path(), "devices"}, four_gpus({{"COHORT_FAKE_CUINIT", "803"}}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "no GPU: the kernel module and libcuda.so.1 are of different versions"))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "cpu ")) << outcome.out;
  const Outcome masked = run({cohort_path(), "devices", "--json"}, four_gpus({{"CUDA_VISIBLE_DEVICES", "-1"}}));
  EXPECT_EQ(masked.code, 3);
  const auto json = parse_json<nlohmann::json>(masked.out);
  EXPECT_TRUE(json["visible"].empty());
  EXPECT_EQ(json["hidden"].size(), 4u);
  EXPECT_TRUE(contains(json["absence"], "CUDA_VISIBLE_DEVICES='-1' shows no device"));
}

TEST(CliDevices, EveryGpuIsListedWithWhatAUserNeeds) {
  const Outcome outcome = run({cohort_path(), "devices"}, four_gpus({{"CUDA_VISIBLE_DEVICES", "2,0"}}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "cuda:0   NVIDIA H100, 79.0 GiB free of 80.0 GiB, compute capability 9.0"))
      << outcome.out;
  EXPECT_TRUE(
      contains(outcome.out,
               "PCI 0000:4c:00.0, GPU-22222222-d72c-4106-c12f-20bd9faed9f2, GPU 2 of the machine, EGL device 2, "
               "seen by CUDA, NVML"))
      << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "hidden   NVIDIA H100")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "driver   580.65.06, CUDA up to 13.0")) << outcome.out;
  const auto json = parse_json<nlohmann::json>(run({cohort_path(), "devices", "--json"}, four_gpus()).out);
  EXPECT_EQ(json["visible"].size(), 4u);
  EXPECT_EQ(json["visible"][3]["uuid"], "GPU-33333333-d72c-4106-c12f-20bd9faed9f3");
  EXPECT_EQ(json["visible"][3]["memory_total"], 80ull << 30);
}

TEST(CliDevices, RanksShareTheMaskAndTheirRendererFollowsTheirGpu) {
  EXPECT_EQ(seen_by_ranks({"--nproc_per_node=2"}, four_gpus({{"CUDA_VISIBLE_DEVICES", "2,3"}})),
            (std::vector<std::string>{"[rank 0] 0/2,3/2/2/2/2", "[rank 1] 1/2,3/3/3/3/3"}));
  EXPECT_EQ(seen_by_ranks({"--nproc_per_node=2"}, four_gpus()),
            (std::vector<std::string>{"[rank 0] 0/unset/0/0/0/0", "[rank 1] 1/unset/1/1/1/1"}));
}

TEST(CliDevices, VirtualLocalRanksGetOneGpuEachInsideTheMask) {
  EXPECT_EQ(seen_by_ranks({"--nproc_per_node=2", "--virtual-local-rank"}, four_gpus({{"CUDA_VISIBLE_DEVICES", "3,1"}})),
            (std::vector<std::string>{"[rank 0] 0/3/3/3/3/3", "[rank 1] 0/1/1/1/1/1"}));
  EXPECT_EQ(seen_by_ranks({"--nproc_per_node=2", "--virtual-local-rank"},
                          four_gpus({{"CUDA_VISIBLE_DEVICES", "GPU-3333,GPU-11111111-d72c"}})),
            (std::vector<std::string>{"[rank 0] 0/GPU-3333/3/3/3/3", "[rank 1] 0/GPU-11111111-d72c/1/1/1/1"}));
  const Outcome too_many = run(launch({"--nproc_per_node=3", "--virtual-local-rank", "--", "/bin/true"}),
                               four_gpus({{"CUDA_VISIBLE_DEVICES", "3,1,9"}}));
  EXPECT_EQ(too_many.code, 1);
  EXPECT_TRUE(contains(too_many.err, "at most 2 can start here")) << too_many.err;
}

TEST(CliDevices, GpuIdsOfAccelerateNarrowTheMask) {
  EXPECT_EQ(seen_by_ranks({"--multi_gpu", "--gpu_ids=1,3"}, four_gpus()),
            (std::vector<std::string>{"[rank 0] 0/1,3/1/1/1/1", "[rank 1] 1/1,3/3/3/3/3"}));
  const Outcome outside = run(launch({"--gpu_ids=0", "--num_processes=1", "--", "/bin/true"}),
                              four_gpus({{"CUDA_VISIBLE_DEVICES", "2,3"}}));
  EXPECT_EQ(outside.code, 1);
  EXPECT_TRUE(contains(outside.err, "GPU '0' is not among those this process may use")) << outside.err;
}

TEST(CliDevices, NprocGpuCountsVisibleGpusAndExplainsEachRank) {
  const Outcome outcome =
      run(launch({"--nproc_per_node=gpu", "--", "/bin/true"}), four_gpus({{"CUDA_VISIBLE_DEVICES", "0,2,3"}}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "3 rank(s), one for each visible GPU")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "local rank 2: GPU 3 of this machine (NVIDIA H100, PCI 0000:5d:00.0"))
      << outcome.err;
  const Outcome none =
      run(launch({"--nproc_per_node=gpu", "--", "/bin/true"}),
          four_gpus({{"CUDA_VISIBLE_DEVICES", ""}, {"COHORT_FAKE_CUINIT", "100"}, {"COHORT_FAKE_NVMLINIT", "9"}}));
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.err, "--nproc_per_node=gpu: there is no GPU: ")) << none.err;
}

TEST(CliDevices, RanksOnTheCpuAreCountedByItsCoresNotByTheGpus) {
  const Outcome automatic = run(launch({"--cpu", "--nproc_per_node=auto", "--", "/bin/true"}), four_gpus());
  EXPECT_EQ(automatic.code, 0) << automatic.err;
  EXPECT_TRUE(contains(automatic.err, "--cpu: ")) << automatic.err;
  EXPECT_FALSE(contains(automatic.err, "GPU")) << automatic.err;
  const Outcome both = run(launch({"--cpu", "--nproc_per_node=gpu", "--", "/bin/true"}), four_gpus());
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(contains(both.err, "contradict each other")) << both.err;
}

}  // namespace
}  // namespace cohort::testing
