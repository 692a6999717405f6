#include "core/devices_cpu.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace cohort {
namespace fs = std::filesystem;
namespace {

/// The first line of a small system file; "" when it cannot be read.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The folder of this process's group and all its parents, nearest first, for version 2 ("" names it) or a controller
/// of version 1. Inside a container the path of /proc/self/cgroup may lie outside what is mounted: then only the root
/// is left.
std::vector<fs::path> group_folders(const fs::path& root, const std::string& self_cgroup,
                                    const std::string& controller) {
  std::stringstream lines(self_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool wanted = controller.empty() ? names == ",," : names.find("," + controller + ",") != std::string::npos;
    if (!wanted) continue;
    const fs::path base = controller.empty() ? root : root / controller;
    std::vector<fs::path> folders;
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path(); !group.empty();
         group = group.parent_path())
      folders.push_back(base / group);
    folders.push_back(base);
    return folders;
  }
  return {};
}

double number_or(const std::string& text, double otherwise) {
  try {
    return std::stod(text);
  } catch (const std::exception&) {
    return otherwise;
  }
}

}  // namespace

double cgroup_cpu_quota(const fs::path& root, const std::string& self_cgroup) {
  double quota = 0;
  const auto take = [&](double limit) {
    if (limit > 0) quota = quota > 0 ? std::min(quota, limit) : limit;
  };
  for (const fs::path& folder : group_folders(root, self_cgroup, "")) {  // cpu.max: "200000 100000" or "max 100000"
    std::stringstream line(first_line(folder / "cpu.max"));
    std::string limit, period;
    if (line >> limit >> period) take(number_or(limit, 0) / std::max(number_or(period, 0), 1.0));
  }
  for (const fs::path& folder : group_folders(root, self_cgroup, "cpu"))
    take(number_or(first_line(folder / "cpu.cfs_quota_us"), 0) /
         std::max(number_or(first_line(folder / "cpu.cfs_period_us"), 0), 1.0));
  return quota;
}

std::uint64_t cgroup_memory_limit(const fs::path& root, const std::string& self_cgroup) {
  double limit = 0;
  const auto take = [&](double bytes) {
    // Version 1 says "no limit" with a number close to 2^63.
    if (bytes > 0 && bytes < 4e18) limit = limit > 0 ? std::min(limit, bytes) : bytes;
  };
  for (const fs::path& folder : group_folders(root, self_cgroup, ""))
    take(number_or(first_line(folder / "memory.max"), 0));
  for (const fs::path& folder : group_folders(root, self_cgroup, "memory"))
    take(number_or(first_line(folder / "memory.limit_in_bytes"), 0));
  return static_cast<std::uint64_t>(limit);
}

namespace {

std::string self_cgroup() {
  std::ifstream file("/proc/self/cgroup");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::uint64_t memory_limit() {
  return cgroup_memory_limit("/sys/fs/cgroup", self_cgroup());
}

int available_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#if defined(__linux__)
  cpu_set_t affinity;
  if (sched_getaffinity(0, sizeof affinity, &affinity) == 0) cores = std::max(1, CPU_COUNT(&affinity));
#endif
  const double quota = cgroup_cpu_quota("/sys/fs/cgroup", self_cgroup());
  if (quota > 0) cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(quota))));
  return cores;
}

CpuDevice host_cpu() {
  CpuDevice cpu;
  cpu.cores = available_cores();
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      cpu.name = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  cpu.memory_total =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (const std::uint64_t limit = memory_limit()) cpu.memory_total = std::min(cpu.memory_total, limit);
  return cpu;
}

}  // namespace cohort
