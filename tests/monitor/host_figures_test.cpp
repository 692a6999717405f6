#include "monitor/host_figures.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/format.h"
#include "monitor/host_text.h"

namespace cohort::monitor {
namespace {
namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

/// A folder that stands for "/" of an invented machine with 16 cores and 64 GiB.
class HostFigures : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / format("cohort_host_{}", ::getpid());
    fs::remove_all(root_);
    put("proc/meminfo",
        "MemTotal:       67108864 kB\nMemFree:         1000 kB\nMemAvailable:   33554432 kB\nBuffers: 5 kB\n");
    put("proc/self/status",
        "Name:\tcohort_train\nVmPeak:\t  9000 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nCpus_allowed:\tffff\n"
        "Cpus_allowed_list:\t0-15\n");
    put("proc/loadavg", "1.16 0.60 0.35 3/93 10098\n");
    put("sys/devices/system/cpu/online", "0-15\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void version_two(const std::string& group, const std::string& mount_root = "/") {
    put("proc/self/cgroup", "0::" + group + "\n");
    put("proc/self/mountinfo",
        "22 1 0:20 / / rw - ext4 /dev/sda1 rw\n"
        "30 22 0:26 " +
            mount_root + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void version_one(const std::string& group, const std::string& mount_root = "/") {
    put("proc/self/cgroup", "9:name=systemd:/other\n4:memory:" + group + "\n3:cpu,cpuacct:" + group + "\n0::/\n");
    put("proc/self/mountinfo", "34 31 0:31 " + mount_root +
                                   " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                                   "35 31 0:32 " +
                                   mount_root +
                                   " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                   "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    fs::create_directories(root_ / "sys/fs/cgroup/unified");
  }
  fs::path root_;
};

TEST_F(HostFigures, ProcessMemoryIsReadFromStatus) {
  const ProcessMemory memory = process_memory(root_);
  EXPECT_EQ(memory.rss, kMiB);
  EXPECT_EQ(memory.peak_rss, 2 * kMiB);
}

TEST_F(HostFigures, WithoutControlGroupsTheMachineIsTheLimit) {
  const HostMemory memory = host_memory(root_);
  EXPECT_EQ(memory.total, 64 * kGiB);
  EXPECT_EQ(memory.available, 32 * kGiB);
  EXPECT_FALSE(memory.cgroup.has_value());
  EXPECT_EQ(memory.usable_total, 64 * kGiB);
  EXPECT_EQ(memory.usable_available, 32 * kGiB);
  EXPECT_EQ(host_cores(root_).usable, 16);
}

TEST_F(HostFigures, VersionTwoLimitCountsWithoutDroppableCache) {
  version_two("/user.slice/job");
  put("sys/fs/cgroup/user.slice/job/memory.max", format("{}\n", 8 * kGiB));
  put("sys/fs/cgroup/user.slice/job/memory.current", format("{}\n", 5 * kGiB));
  put("sys/fs/cgroup/user.slice/job/memory.stat", format("anon 1\ninactive_file {}\nactive_file 7\n", 2 * kGiB));
  const HostMemory memory = host_memory(root_);
  ASSERT_TRUE(memory.cgroup.has_value());
  EXPECT_EQ(memory.cgroup->limit, 8 * kGiB);
  EXPECT_EQ(memory.cgroup->used, 3 * kGiB);
  EXPECT_EQ(memory.usable_total, 8 * kGiB);
  EXPECT_EQ(memory.usable_available, 5 * kGiB);
}

TEST_F(HostFigures, TheTightestLimitOnTheWayUpCounts) {
  version_two("/a/b");
  put("sys/fs/cgroup/a/b/memory.max", format("{}\n", 16 * kGiB));
  put("sys/fs/cgroup/a/b/memory.current", format("{}\n", kGiB));
  put("sys/fs/cgroup/a/memory.max", format("{}\n", 4 * kGiB));
  put("sys/fs/cgroup/a/memory.current", format("{}\n", 3 * kGiB));  // siblings of b use the rest
  HostMemory memory = host_memory(root_);
  ASSERT_TRUE(memory.cgroup.has_value());
  EXPECT_EQ(memory.cgroup->limit, 4 * kGiB);
  EXPECT_EQ(memory.usable_available, kGiB);
  EXPECT_EQ(memory.cgroup->folder.filename(), "a");

  put("sys/fs/cgroup/a/b/memory.max", format("{}\n", 2 * kGiB));  // now the nearest is the tightest
  memory = host_memory(root_);
  EXPECT_EQ(memory.cgroup->limit, 2 * kGiB);
  EXPECT_EQ(memory.usable_available, kGiB);
}

TEST_F(HostFigures, AnUnlimitedGroupAndOneAboveTheMachineAreNoLimit) {
  version_two("/job");
  put("sys/fs/cgroup/job/memory.max", "max\n");
  put("sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_FALSE(host_memory(root_).cgroup.has_value());
  put("sys/fs/cgroup/job/memory.max", format("{}\n", 100 * kGiB));
  EXPECT_FALSE(host_memory(root_).cgroup.has_value());
  EXPECT_EQ(host_memory(root_).usable_total, 64 * kGiB);
}

TEST_F(HostFigures, VersionOneLimitsAreFoundBesideAnEmptyUnifiedTree) {
  version_one("/docker/abc");
  put("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", format("{}\n", 2 * kGiB));
  put("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", format("{}\n", kGiB));
  put("sys/fs/cgroup/memory/docker/abc/memory.stat", "inactive_file 5\ntotal_inactive_file 1048576\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
  put("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const HostMemory memory = host_memory(root_);
  ASSERT_TRUE(memory.cgroup.has_value());
  EXPECT_EQ(memory.cgroup->limit, 2 * kGiB);
  EXPECT_EQ(memory.cgroup->used, kGiB - kMiB);
  const HostCores cores = host_cores(root_);
  EXPECT_DOUBLE_EQ(cores.quota.value_or(0), 2.5);
  EXPECT_EQ(cores.usable, 3);
}

TEST_F(HostFigures, InsideAContainerTheMountPointIsTheGroup) {
  // The container sees its own group as the root of the mount, and its full path in /proc/self/cgroup.
  version_one("/docker/abc", "/docker/abc");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", format("{}\n", kGiB));
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", format("{}\n", kMiB));
  EXPECT_EQ(host_memory(root_).usable_total, kGiB);
  // With a private namespace and a mount made outside of it, both are relative to something above.
  version_two("/../../job", "/../..");
  put("sys/fs/cgroup/memory.max", format("{}\n", 3 * kGiB));
  EXPECT_EQ(host_memory(root_).usable_total, 3 * kGiB);
}

TEST_F(HostFigures, AffinityAndQuotaLimitTheCores) {
  put("proc/self/status", "Cpus_allowed_list:\t0-3,8,10-11\n");
  EXPECT_EQ(host_cores(root_).online, 16);
  EXPECT_EQ(host_cores(root_).allowed, 7);
  EXPECT_EQ(host_cores(root_).usable, 7);
  version_two("/job");
  put("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(host_cores(root_).usable, 2);  // a core and a half keeps two threads busy
  put("sys/fs/cgroup/job/cpu.max", "10000 100000\n");
  EXPECT_EQ(host_cores(root_).usable, 1);
  put("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_FALSE(host_cores(root_).quota.has_value());
  EXPECT_EQ(host_cores(root_).usable, 7);
  put("proc/self/status", "Cpus_allowed_list:\t0-255\n");  // wider than the machine
  EXPECT_EQ(host_cores(root_).usable, 16);
}

TEST_F(HostFigures, LoadIsThreeNumbers) {
  const LoadAverage load = load_average(root_);
  EXPECT_DOUBLE_EQ(load.minute1, 1.16);
  EXPECT_DOUBLE_EQ(load.minute5, 0.60);
  EXPECT_DOUBLE_EQ(load.minute15, 0.35);
}

TEST_F(HostFigures, MissingAndBrokenFilesAreUnknownNotErrors) {
  fs::remove_all(root_);
  EXPECT_EQ(process_memory(root_).rss, 0u);
  EXPECT_EQ(host_memory(root_).total, 0u);
  EXPECT_EQ(host_cores(root_).usable, 1);
  EXPECT_TRUE(std::isnan(load_average(root_).minute1));
  put("proc/self/cgroup", "nonsense\n::\n0::");
  put("proc/self/mountinfo", "a b c\n- - -\n\n1 2 3 / /x rw -\n");
  put("proc/self/status", "Cpus_allowed_list:\t7-3,x,-\nVmRSS: many kB\n");
  put("proc/meminfo", "MemTotal:");
  put("proc/loadavg", "0.5 high");
  EXPECT_EQ(host_memory(root_).total, 0u);
  EXPECT_EQ(host_cores(root_).usable, 1);
  EXPECT_DOUBLE_EQ(load_average(root_).minute1, 0.5);
  EXPECT_TRUE(std::isnan(load_average(root_).minute5));
}

TEST_F(HostFigures, AMountPointWithABlankIsUnescaped) {
  put("proc/self/cgroup", "0::/job\n");
  put("proc/self/mountinfo", "30 22 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  put("my groups/job/memory.max", format("{}\n", kGiB));
  EXPECT_EQ(host_memory(root_).usable_total, kGiB);
}

TEST(HostFiguresLive, MemoryThatIsTouchedShowsInRssAndStaysInThePeak) {
  constexpr std::size_t kTouched = 64 * kMiB;
  const ProcessMemory before = process_memory();
  ASSERT_GT(before.rss, 0u);
  {
    std::vector<char> block(kTouched);
    std::memset(block.data(), 1, block.size());
    const ProcessMemory during = process_memory();
    EXPECT_GE(during.rss, before.rss + kTouched * 9 / 10);
    EXPECT_EQ(block[kTouched / 2], 1);
  }
  EXPECT_GE(process_memory().peak_rss, before.rss + kTouched * 9 / 10);
}

TEST(HostFiguresLive, TotalAgreesWithSysinfo) {
  struct sysinfo info {};
  ASSERT_EQ(::sysinfo(&info), 0);
  const HostMemory memory = host_memory();
  // /proc/meminfo counts whole kilobytes.
  EXPECT_NEAR(static_cast<double>(memory.total), static_cast<double>(info.totalram) * info.mem_unit, 4096.0);
  EXPECT_LE(memory.usable_total, memory.total);
  EXPECT_GT(memory.usable_available, 0u);
}

TEST(HostFiguresLive, AnAffinityOfOneCoreIsSeen) {
  cpu_set_t saved, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof saved, &saved), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &saved)) {
      CPU_SET(cpu, &one);
      break;
    }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const HostCores pinned = host_cores();
  ASSERT_EQ(::sched_setaffinity(0, sizeof saved, &saved), 0);
  EXPECT_EQ(pinned.allowed, 1);
  EXPECT_EQ(pinned.usable, 1);
  EXPECT_EQ(host_cores().allowed, CPU_COUNT(&saved));
  EXPECT_GE(host_cores().usable, 1);
}

}  // namespace
}  // namespace cohort::monitor
