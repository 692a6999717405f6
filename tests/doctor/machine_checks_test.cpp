// Checks of a machine, on recorded /proc and /sys trees and figures of GPUs.
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/files.h"
#include "doctor/examination.h"

namespace cohort::doctor {
namespace {
namespace fs = std::filesystem;

/// A recorded machine: two H100, one healthy driver, one network interface, a large /dev/shm.
class Machine : public ::testing::Test {
 protected:
  Machine() : folder_("cohort-machine-") {
    put("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n");
    put("proc/loadavg", "1.0 1.0 1.0 1/100 1\n");
    put("proc/self/status", "Cpus_allowed_list:\t0-15\n");
    put("sys/devices/system/cpu/online", "0-15\n");
    put("proc/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,size=33554432k 0 0\n");
    put("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12\n");
    put("usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06", "");
    put("dev/nvidiactl", "");
    for (const char* card : {"0000:1b:00.0", "0000:43:00.0"}) {
      put(format("sys/bus/pci/devices/{}/vendor", card), "0x10de\n");
      put(format("sys/bus/pci/devices/{}/class", card), "0x030200\n");
      put(format("proc/driver/nvidia/gpus/{}/information", card), "Model: NVIDIA H100\n");
    }
    interface("lo", 1, 1);
    interface("eth0", 2, 2);
  }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((folder_.path() / path).parent_path());
    std::ofstream(folder_.path() / path) << text;
  }
  void interface(const std::string& name, int index, int link, const std::string& state = "up") {
    put("sys/class/net/" + name + "/operstate", state + "\n");
    put("sys/class/net/" + name + "/ifindex", format("{}\n", index));
    put("sys/class/net/" + name + "/iflink", format("{}\n", link));
  }
  void remove(const std::string& path) { fs::remove_all(folder_.path() / path); }

  Case facts() const {
    Case c = this_machine(folder_.path());
    c.variable = [this](const std::string& name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
    c.nodes = nodes;
    c.minimum_cuda_version = 12080;
    c.machine.gpus = gpus;
    return c;
  }
  Examination look() const { return examine(facts()); }
  /// The one finding of a check; an empty one where there is none.
  Finding of(const std::string& check) const {
    Finding found;
    for (const Finding& f : look().findings)
      if (f.check == check) {
        EXPECT_TRUE(found.title.empty()) << check << " has found " << found.title << " and " << f.title;
        found = f;
      }
    return found;
  }
  void expect(const std::string& check, Severity severity, const std::string& title, const std::string& evidence,
              const std::string& remedy) const {
    const Finding f = of(check);
    EXPECT_EQ(f.severity, severity) << check;
    EXPECT_NE(f.title.find(title), std::string::npos) << check << ": " << f.title;
    EXPECT_NE(f.evidence.find(evidence), std::string::npos) << check << ": " << f.evidence;
    EXPECT_NE(f.remedy.find(remedy), std::string::npos) << check << ": " << f.remedy;
  }
  void expect_nothing(const std::string& check) const { EXPECT_EQ(of(check).title, "") << of(check).evidence; }

  std::map<std::string, std::string> variables;
  std::vector<monitor::GpuFigures> gpus;
  int nodes = 1;
  TemporaryFolder folder_;
};

monitor::GpuFigures busy_gpu(int index, int utilization, std::uint64_t gib) {
  monitor::GpuFigures gpu;
  gpu.index = index;
  gpu.name = "NVIDIA H100";
  gpu.memory_total = 80ull << 30;
  gpu.memory_used = gib << 30;
  gpu.utilization = utilization;
  gpu.slowed_by.emplace();
  return gpu;
}

TEST_F(Machine, AHealthyOneHasNoFindings) {
  const Examination found = look();
  for (const Finding& f : found.findings) ADD_FAILURE() << f.check << ": " << f.title << ", " << f.evidence;
  EXPECT_GT(found.looked_at.size(), 8u);
  EXPECT_FALSE(found.left_out.empty());
}

TEST_F(Machine, GpusWithoutADriverAreAnErrorAndNouveauIsNamed) {
  remove("proc/driver");
  expect("gpu-driver", Severity::kError, "2 NVIDIA GPU(s) and no driver", "/proc/driver/nvidia/version is not",
         "modprobe nvidia");
  put("proc/modules", "nouveau 2000000 1 - Live 0x0\n");
  expect("gpu-driver", Severity::kError, "no driver", "nouveau is loaded", "blacklist nouveau");
}

TEST_F(Machine, KernelModuleAndLibrariesOfDifferentVersionsAreAnError) {
  remove("usr/lib");
  put("usr/lib/x86_64-linux-gnu/libcuda.so.570.10.01", "");
  expect("gpu-driver", Severity::kError, "different versions", "580.65.06, and there is /usr/lib/x86_64-linux-gnu",
         "start the machine again");
}

TEST_F(Machine, GpusThatAreNotHandedToAContainerAreAnError) {
  remove("dev");
  put(".dockerenv", "");
  expect("gpu-driver", Severity::kError, "not in this container", "/dev/nvidia0 are missing", "--gpus all");
}

TEST_F(Machine, ADriverTooOldForTheBuildIsAnError) {
  put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed\n");
  put("usr/lib/x86_64-linux-gnu/libcuda.so.470.82.01", "");
  remove("usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06");
  expect("gpu-cuda-version", Severity::kError, "too old", "driver 470.82.01, CUDA 12 needs 525.60.13",
         "update the driver");
}

TEST_F(Machine, AMaskThatNamesAnAbsentGpuIsAnError) {
  variables["CUDA_VISIBLE_DEVICES"] = "0,1";
  expect_nothing("gpu-visible");
  variables["CUDA_VISIBLE_DEVICES"] = "0,2";
  expect("gpu-visible", Severity::kError, "names a GPU that is not there", "CUDA ignores '2'", "from 0 to 1");
}

TEST_F(Machine, MemoryOfAGpuThatIsFullOrInOtherHandsIsAWarning) {
  gpus = {busy_gpu(0, 90, 79)};
  expect("gpu-memory", Severity::kWarning, "is full", "79.0 GiB of 80.0 GiB", "gradient_accumulation_steps");
  gpus = {busy_gpu(0, 90, 40)};
  gpus[0].processes = {{.pid = 4711, .memory = 30ull << 30}};
  expect("gpu-memory", Severity::kWarning, "another program takes memory", "process 4711 has 30.0 GiB",
         "CUDA_VISIBLE_DEVICES");
}

TEST_F(Machine, ClocksHeldBackByHeatAreAWarningAndByThePowerLimitANote) {
  gpus = {busy_gpu(0, 90, 40)};
  gpus[0].slowed_by = {"hardware thermal slowdown"};
  gpus[0].temperature = 93;
  expect("gpu-clocks", Severity::kWarning, "below its clock", "hardware thermal slowdown; 93 C", "fans");
  gpus[0].slowed_by = {"power cap"};
  expect("gpu-clocks", Severity::kNote, "power limit", "power cap", "usual");
}

TEST_F(Machine, LostGpusMemoryErrorsAndNarrowLinksAreFound) {
  gpus = {busy_gpu(0, 90, 40)};
  gpus[0].uncorrected_errors = 2;
  expect("gpu-health", Severity::kError, "errors in its memory", "2 that could not be corrected", "reset");
  gpus[0].uncorrected_errors = 0;
  gpus[0].pcie_width = 4;
  gpus[0].pcie_width_max = 16;
  expect("gpu-health", Severity::kWarning, "narrow link", "4 of 16 PCIe lanes", "slot");
  gpus = {monitor::GpuFigures{}};
  expect("gpu-health", Severity::kError, "does not answer", "NVML lists it", "xid");
}

TEST_F(Machine, GpusThatAreUnequallyBusyOrFullOrOfDifferentKindsAreFound) {
  gpus = {busy_gpu(0, 95, 40), busy_gpu(1, 90, 40)};
  expect_nothing("gpu-balance");
  gpus = {busy_gpu(0, 95, 40), busy_gpu(1, 60, 40)};
  expect("gpu-balance", Severity::kWarning, "not equally busy", "GPU 1 (NVIDIA H100) 60 %", "larger batches");
  gpus = {busy_gpu(0, 95, 70), busy_gpu(1, 95, 30)};
  expect("gpu-balance", Severity::kWarning, "alike much memory", "GPU 0 (NVIDIA H100) 88 %", "one process per GPU");
  gpus = {busy_gpu(0, 95, 40), busy_gpu(1, 95, 40)};
  gpus[1].name = "NVIDIA A100";
  expect("gpu-balance", Severity::kNote, "different kinds", "NVIDIA A100", "slowest");
}

TEST_F(Machine, GpusWithoutPeerAccessOrBehindAnIommuAreAWarning) {
  put("sys/kernel/iommu_groups/0/type", "DMA\n");
  expect("gpu-p2p", Severity::kWarning, "P2P between the GPUs", "/sys/kernel/iommu_groups has 1", "NCCL_P2P_DISABLE=1");
  put("proc/cpuinfo", "flags : fpu hypervisor avx2\n");
  expect("gpu-p2p", Severity::kWarning, "P2P", "flag hypervisor", "NCCL_P2P_DISABLE=1");
  gpus = {busy_gpu(0, 90, 40), busy_gpu(1, 90, 40)};
  Case c = facts();
  c.peer_access = [](int from, int to) { return std::optional<bool>(from == to); };
  bool told = false;
  for (const Finding& f : examine(c).findings) told = told || f.title == "GPUs cannot read each other's memory";
  EXPECT_TRUE(told);
  c.peer_access = [](int, int) { return std::optional<bool>(true); };
  for (const Finding& f : examine(c).findings) EXPECT_NE(f.check, "gpu-p2p") << "what works needs no warning";
  variables["NCCL_P2P_DISABLE"] = "1";
  expect("gpu-p2p", Severity::kNote, "through the host", "NCCL_P2P_DISABLE=1", "unset");
}

TEST_F(Machine, AnInterfaceVariableThatNamesNothingOrADeadInterfaceIsAnError) {
  variables["NCCL_SOCKET_IFNAME"] = "eth";  // NCCL takes prefixes, Gloo whole names
  expect_nothing("net-interface");
  variables["NCCL_SOCKET_IFNAME"] = "=eth";
  expect("net-interface", Severity::kError, "NCCL_SOCKET_IFNAME names no interface", "there are eth0, lo",
         "NCCL_SOCKET_IFNAME=eth0");
  variables = {{"GLOO_SOCKET_IFNAME", "eth"}};
  expect("net-interface", Severity::kError, "GLOO_SOCKET_IFNAME names no interface", "GLOO_SOCKET_IFNAME=eth", "eth0");
  interface("ib0", 3, 3, "down");
  variables = {{"GLOO_SOCKET_IFNAME", "ib0"}};
  expect("net-interface", Severity::kError, "is down", "/sys/class/net/ib0/operstate is down", "ip link set ib0 up");
  variables = {{"NCCL_SOCKET_IFNAME", "^lo"}};
  expect_nothing("net-interface");
}

TEST_F(Machine, SeveralInterfacesMatterOnlyBetweenNodes) {
  interface("eth1", 3, 3);
  interface("docker0", 4, 4);
  expect_nothing("net-interface");
  nodes = 2;
  expect("net-interface", Severity::kWarning, "may choose an interface", "eth0, eth1 are up",
         "GLOO_SOCKET_IFNAME=eth0");
  variables = {{"NCCL_SOCKET_IFNAME", "eth1"}};
  expect_nothing("net-interface");
}

TEST_F(Machine, APacketFilterBetweenNodesIsAWarning) {
  put("proc/net/ip_tables_names", "nat\nfilter\n");
  expect_nothing("net-firewall");
  nodes = 2;
  expect("net-firewall", Severity::kWarning, "packet filter", "ip_tables_names has filter", "open the ports");
}

TEST_F(Machine, AContainersOwnNetworkIsAnErrorBetweenNodes) {
  put("run/.containerenv", "");
  interface("eth0", 2, 57);
  expect_nothing("net-container");
  nodes = 2;
  expect("net-container", Severity::kError, "a network of its own", "ifindex 2, iflink 57", "network_mode: host");
  interface("eth0", 2, 2);  // --network host
  expect_nothing("net-container");
}

TEST_F(Machine, DockersSharedMemoryIsAWarning) {
  put("proc/mounts", "shm /dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k 0 0\n");
  expect("net-shm", Severity::kWarning, "/dev/shm is small", "64.0 MiB, Docker's default", "--shm-size 1g");
  put("proc/mounts", "proc /proc proc rw 0 0\n");
  expect("net-shm", Severity::kWarning, "no /dev/shm", "/proc/mounts", "--ipc host");
}

TEST_F(Machine, InfinibandThatIsDownOrMayLockLittleMemoryIsFound) {
  put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  put("sys/class/infiniband/mlx5_0/ports/1/phys_state", "3: Disabled\n");
  expect("net-infiniband", Severity::kWarning, "a port of mlx5_0", "state is 1: DOWN, phys_state 3: Disabled",
         "NCCL_IB_DISABLE=1");
  variables["NCCL_IB_DISABLE"] = "1";
  expect_nothing("net-infiniband");
  variables.clear();
  put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  put("proc/modules", "nvidia_peermem 16384 0 - Live 0x0\n");
  expect_nothing("net-infiniband");
  put("proc/self/limits", "Limit Soft Hard Units\nMax locked memory         65536                65536     bytes\n");
  expect("net-infiniband", Severity::kError, "too little memory may be locked", "64.0 KiB", "memlock=-1");
}

TEST_F(Machine, AGuidesPortInUseIsAWarningAndOneThatIsAskedForAnError) {
  // 12355 = 0x3043, 29500 = 0x733C; state 0A listens, 01 is a connection.
  put("proc/net/tcp",
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:3043 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1\n"
      "   1: 0100007F:733C 0100007F:8000 01 00000000:00000000 00:00000000 00000000     0        0 12346 1\n");
  expect("net-port", Severity::kWarning, "port 12355", "may not see", "leave --master_port out");
  variables["MASTER_PORT"] = "12355";
  expect("net-port", Severity::kError, "port 12355 is in use", "listens on it", "ss -ltnp sport = :12355");
}

TEST_F(Machine, LittleMemoryAndKilledProgramsAreFound) {
  put("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 4194304 kB\n");
  expect("host-memory", Severity::kWarning, "nearly used up", "4.0 GiB left of 64.0 GiB", "memory_budget_bytes");
  put("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 1048576 kB\n");
  expect("host-memory", Severity::kError, "nearly used up", "1.0 GiB left", "SIGKILL");
  put("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n");
  put("proc/vmstat", "nr_free_pages 1\noom_kill 2\n");
  expect("host-memory", Severity::kNote, "ended programs", "/proc/vmstat: oom_kill 2", "dmesg");
  put("proc/self/cgroup", "0::/job\n");
  put("proc/self/mountinfo", "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("sys/fs/cgroup/job/memory.max", "8589934592\n");
  put("sys/fs/cgroup/job/memory.events", "low 0\noom 1\noom_kill 1\n");
  expect("host-memory", Severity::kWarning, "ended programs", "memory.events: oom_kill 1", "higher limit");
}

TEST_F(Machine, MoreThreadsThanCoresAreAWarning) {
  variables["OMP_NUM_THREADS"] = "64";
  expect("host-cores", Severity::kWarning, "OMP_NUM_THREADS is more than the cores", "64, 16 usable", "16");
  variables.clear();
  put("proc/loadavg", "40.5 30 20 1/100 1\n");
  expect("host-cores", Severity::kWarning, "overloaded", "load 40.5 on 16 cores", "loader.workers");
}

TEST_F(Machine, FewOpenFilesAndARankWithoutItsLauncherAreFound) {
  put("proc/self/limits", "Max open files            256                  4096                 files\n");
  expect("host-files", Severity::kWarning, "few files", "Max open files 256", "ulimit -n");
  put("proc/77/stat", "77 (cohort-train) S 1 77 77 0 -1 0 1 0 0 0 250 150 0 0 20 0 9 0 123456 1000 25 1\n");
  using namespace std::string_literals;
  put("proc/77/environ", "RANK=1\0WORLD_SIZE=2\0TORCHELASTIC_RUN_ID=a\0"s);
  expect("host-left-over", Severity::kWarning, "outlived its launcher", "process 77 (cohort-train), rank 1 of 2",
         "kill 77");
}

}  // namespace
}  // namespace cohort::doctor
