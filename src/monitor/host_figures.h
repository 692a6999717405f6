/// Memory, processors and load of this process and its machine, as containers and affinities leave them.
/// Sources: proc(5), and host_cgroup.h. What the system does not tell is 0 or NaN, as stated, never an error.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "monitor/host_cgroup.h"

namespace cohort::monitor {

/// Resident memory of this process, bytes; 0 when unknown.
struct ProcessMemory {
  std::uint64_t rss = 0;
  std::uint64_t peak_rss = 0;
};
ProcessMemory process_memory(const std::filesystem::path& root = "/");

/// Memory of the machine and what this process may still take, bytes; 0 when unknown.
struct HostMemory {
  std::uint64_t total = 0;             ///< of the machine
  std::uint64_t available = 0;         ///< of the machine, without swapping
  std::optional<CgroupMemory> cgroup;  ///< set where a control group allows less than the machine has
  std::uint64_t usable_total = 0;      ///< total, or the group's limit
  std::uint64_t usable_available = 0;  ///< the smaller of available and what the group leaves
};
HostMemory host_memory(const std::filesystem::path& root = "/");

/// Processors.
struct HostCores {
  int online = 0;               ///< of the machine, hyper-threads counted
  int allowed = 0;              ///< by the affinity mask (taskset, cpusets)
  std::optional<double> quota;  ///< cores' worth of time that control groups allow; unset: unlimited
  int usable = 1;               ///< what to plan threads for: the smaller of both, a quota rounded up, at least 1
};
HostCores host_cores(const std::filesystem::path& root = "/");

/// Processes that run or wait for a processor, averaged over 1, 5 and 15 minutes; NaN when unknown.
struct LoadAverage {
  double minute1;
  double minute5;
  double minute15;
};
LoadAverage load_average(const std::filesystem::path& root = "/");

}  // namespace cohort::monitor
