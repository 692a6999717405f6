/// Whether the kernel's out-of-memory killer was at work.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace cohort::launch {

struct OomCounts {
  std::int64_t group = -1;  ///< processes killed in this control group: memory.events or memory.oom_control; -1 unknown
  std::int64_t machine = -1;  ///< on the whole machine: /proc/vmstat; -1 unknown
};

OomCounts read_oom_counts();
/// From other roots, for tests: `cgroup` is /sys/fs/cgroup, `proc` is /proc.
OomCounts read_oom_counts(const std::filesystem::path& cgroup, const std::filesystem::path& proc);

/// What SIGKILL most likely meant, given the counts before and after: one line with the evidence. peak_bytes: the
/// largest resident memory of the killed process; limit_bytes: of the control group, 0 for none.
std::string explain_kill(const OomCounts& before, const OomCounts& after, std::uint64_t peak_bytes,
                         std::uint64_t limit_bytes);

}  // namespace cohort::launch
