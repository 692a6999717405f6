#include "launch/oom.h"

#include <fstream>
#include <sstream>

#include "core/format.h"

namespace cohort::launch {
namespace fs = std::filesystem;
namespace {

/// The number after the word `key` in a file of "key number" lines; -1 when it is not there.
std::int64_t value_of(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  std::int64_t value = 0;
  while (file >> word >> value)
    if (word == key) return value;
  return -1;
}

/// Inside a container the group's path may lie outside what is mounted: then the mount's root is the group.
std::int64_t in_group(const fs::path& root, const std::string& group, const std::string& file, const std::string& key) {
  const std::int64_t own = value_of(root / fs::path(group).relative_path() / file, key);
  return own >= 0 ? own : value_of(root / file, key);
}

}  // namespace

OomCounts read_oom_counts(const fs::path& cgroup, const fs::path& proc) {
  OomCounts counts;
  counts.machine = value_of(proc / "vmstat", "oom_kill");
  std::ifstream groups(proc / "self" / "cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    std::int64_t found = -1;
    if (controllers == ",,") found = in_group(cgroup, group, "memory.events", "oom_kill");
    if (controllers.find(",memory,") != std::string::npos)
      found = in_group(cgroup / "memory", group, "memory.oom_control", "oom_kill");
    if (found >= 0) counts.group = found;
  }
  return counts;
}

OomCounts read_oom_counts() {
  return read_oom_counts("/sys/fs/cgroup", "/proc");
}

std::string explain_kill(const OomCounts& before, const OomCounts& after, std::uint64_t peak_bytes,
                         std::uint64_t limit_bytes) {
  const std::string peak = format("its memory peaked at {}", format_bytes(static_cast<double>(peak_bytes)));
  const std::string limit =
      limit_bytes ? format(", the limit of this control group is {}", format_bytes(static_cast<double>(limit_bytes)))
                  : "";
  if (before.group >= 0 && after.group > before.group)
    return format(
        "the out-of-memory killer ended {} process(es) of this control group meanwhile, very likely this one; {}{}. "
        "Use "
        "smaller batches or fewer workers, or raise the limit",
        after.group - before.group, peak, limit);
  if (before.machine >= 0 && after.machine > before.machine)
    return format(
        "the machine ran out of memory meanwhile ({} process(es) ended by the kernel), very likely this one; {}{}",
        after.machine - before.machine, peak, limit);
  if (before.group >= 0 || before.machine >= 0)
    return format(
        "the kernel counts no out-of-memory kill meanwhile: somebody sent it (a scheduler's limit, an administrator); "
        "{}{}",
        peak, limit);
  return format("most often that is the out-of-memory killer (see dmesg), else a scheduler's limit; {}{}", peak, limit);
}

}  // namespace cohort::launch
