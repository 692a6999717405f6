/// What the control groups of the process allow it: memory and processor time. Version 1 and 2
/// (Linux Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst; proc(5) for /proc/self/mountinfo).
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace cohort::monitor {

/// A memory limit set on the process's group or one above it. The smallest counts, because each of them is enforced.
struct CgroupMemory {
  std::uint64_t limit = 0;       ///< bytes
  std::uint64_t used = 0;        ///< bytes in the group that sets the limit, without file cache that can be dropped
  std::filesystem::path folder;  ///< the group that sets it
};

/// nullopt when no group above the process limits its memory. `root` stands before every absolute path (tests).
std::optional<CgroupMemory> cgroup_memory(const std::filesystem::path& root = "/");

/// Processor time allowed, in cores (1.5 is one and a half); nullopt when unlimited.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& root = "/");

}  // namespace cohort::monitor
