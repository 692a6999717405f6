/// The processor and memory that this process may use.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace cohort {

struct CpuDevice {
  std::string name;  ///< "AMD EPYC 9355", "" when the system does not say
  int cores = 1;     ///< available_cores()
  std::uint64_t memory_total =
      0;  ///< bytes: the machine's, or the memory limit of the control group where that is smaller
};

CpuDevice host_cpu();

/// Logical processors that this process may keep busy: its affinity mask, bounded by the CPU quota of its control group
/// (rounded up). At least 1.
int available_cores();

/// The memory limit in bytes of this process's control group; 0 when there is none.
std::uint64_t memory_limit();

/// The CPU quota, in processors, of the control group (version 1 or 2) whose files lie under `root` for the process
/// described by `self_cgroup` (the text of /proc/self/cgroup); 0 when there is none.
double cgroup_cpu_quota(const std::filesystem::path& root, const std::string& self_cgroup);

/// The memory limit in bytes, likewise; 0 when there is none.
std::uint64_t cgroup_memory_limit(const std::filesystem::path& root, const std::string& self_cgroup);

}  // namespace cohort
