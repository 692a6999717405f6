#include "core/devices_cpu.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "core/files.h"

namespace cohort {
namespace {
namespace fs = std::filesystem;

class Cgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("cohort-cgroup-" + std::to_string(getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) { write_file_atomically(root_ / path, text + "\n"); }
  fs::path root_;
};

TEST_F(Cgroup, VersionTwoQuotaIsTheSmallestOnTheWayUp) {
  put("job/rank/cpu.max", "max 100000");
  put("job/cpu.max", "150000 100000");
  put("cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(root_, "0::/job/rank\n"), 1.5);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(root_, "0::/\n"), 4.0);
}

TEST_F(Cgroup, VersionOneQuotaIsRead) {
  put("cpu/docker/cpu.cfs_quota_us", "50000");
  put("cpu/docker/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(root_, "3:cpu:/docker\n0::/\n"), 0.5);
  put("cpu/docker/cpu.cfs_quota_us", "-1");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(root_, "3:cpu:/docker\n0::/\n"), 0.0);
}

TEST_F(Cgroup, MemoryLimitIsReadAndNoLimitIsZero) {
  put("job/memory.max", "1073741824");
  EXPECT_EQ(cgroup_memory_limit(root_, "0::/job\n"), 1073741824u);
  put("job/memory.max", "max");
  EXPECT_EQ(cgroup_memory_limit(root_, "0::/job\n"), 0u);
  put("memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(cgroup_memory_limit(root_, "4:memory:/\n"), 0u);
}

TEST_F(Cgroup, AGroupOutsideTheMountLeavesTheRoot) {
  put("cpu.max", "200000 100000");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(root_, "0::/system.slice/docker-1234.scope\n"), 2.0);
}

TEST(Cores, FollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int restricted = available_cores();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(restricted, 1);
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), CPU_COUNT(&before));
}

TEST(Cores, TheHostHasMemory) {
  EXPECT_GT(host_cpu().memory_total, 64u << 20);
}

}  // namespace
}  // namespace cohort
