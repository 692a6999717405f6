#include "monitor/host_figures.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <thread>

#include <sys/resource.h>

#include "core/files.h"
#include "monitor/host_text.h"

namespace cohort::monitor {
namespace fs = std::filesystem;
namespace {

/// "VmRSS:     1736 kB" in bytes; 0 when the line is missing.
std::uint64_t kilobytes(std::string_view text, std::string_view key) {
  const auto value = value_of(text, key);
  return value ? parse_count(*value).value_or(0) * 1024 : 0;
}

/// Length of a list such as "0-3,8,10-11".
int count_of_list(std::string_view list) {
  std::uint64_t count = 0;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view range = list.substr(0, end);
    const std::size_t dash = range.find('-');
    const auto first = parse_count(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_count(range.substr(dash + 1));
    if (first && last && *last >= *first) count += *last - *first + 1;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return static_cast<int>(std::min<std::uint64_t>(count, std::numeric_limits<int>::max()));
}

}  // namespace

ProcessMemory process_memory(const fs::path& root) {
  ProcessMemory memory;
  if (const auto status = read_file_if_there(root / "proc/self/status")) {
    memory.rss = kilobytes(*status, "VmRSS:");
    memory.peak_rss = kilobytes(*status, "VmHWM:");
  }
  if (memory.peak_rss == 0 && root == "/") {  // some sandboxes leave VmHWM out
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0) {
#if defined(__APPLE__)
      constexpr std::uint64_t kUnit = 1;  // getrusage counts bytes there, kilobytes elsewhere
#else
      constexpr std::uint64_t kUnit = 1024;
#endif
      memory.peak_rss = static_cast<std::uint64_t>(usage.ru_maxrss) * kUnit;
    }
  }
  memory.peak_rss =
      std::max(memory.peak_rss, memory.rss);  // the kernel keeps the two in separate, lazily summed counters
  return memory;
}

HostMemory host_memory(const fs::path& root) {
  HostMemory memory;
  if (const auto info = read_file_if_there(root / "proc/meminfo")) {
    memory.total = kilobytes(*info, "MemTotal:");
    memory.available = kilobytes(*info, "MemAvailable:");
  }
  memory.usable_total = memory.total;
  memory.usable_available = memory.available;
  auto cgroup = cgroup_memory(root);
  if (!cgroup || (memory.total > 0 && cgroup->limit >= memory.total)) return memory;
  const std::uint64_t left = cgroup->limit - std::min(cgroup->limit, cgroup->used);
  memory.usable_total = cgroup->limit;
  memory.usable_available = memory.total > 0 ? std::min(memory.available, left) : left;
  memory.cgroup = std::move(cgroup);
  return memory;
}

HostCores host_cores(const fs::path& root) {
  HostCores cores;
  if (const auto online = read_file_if_there(root / "sys/devices/system/cpu/online"))
    cores.online = count_of_list(split_words(*online).empty() ? "" : split_words(*online)[0]);
  if (const auto status = read_file_if_there(root / "proc/self/status"))
    if (const auto list = value_of(*status, "Cpus_allowed_list:")) cores.allowed = count_of_list(*list);
  const int by_library = root == "/" ? static_cast<int>(std::thread::hardware_concurrency()) : 0;
  if (cores.online == 0) cores.online = std::max(by_library, cores.allowed);
  if (cores.allowed == 0) cores.allowed = by_library > 0 ? by_library : cores.online;
  // The mask may name processors that the machine does not have.
  if (cores.online > 0) cores.allowed = std::min(cores.allowed, cores.online);
  cores.quota = cgroup_cpu_quota(root);
  cores.usable = std::max(1, cores.allowed);
  if (cores.quota) cores.usable = std::clamp(static_cast<int>(std::ceil(std::min(*cores.quota, 1e6))), 1, cores.usable);
  return cores;
}

LoadAverage load_average(const fs::path& root) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  LoadAverage load{kUnknown, kUnknown, kUnknown};
  const auto text = read_file_if_there(root / "proc/loadavg");
  if (!text) return load;
  const auto words = split_words(*text);
  double* const targets[] = {&load.minute1, &load.minute5, &load.minute15};
  for (std::size_t i = 0; i < 3 && i < words.size(); ++i) {
    double value = 0;
    const auto [end, error] = std::from_chars(words[i].data(), words[i].data() + words[i].size(), value);
    if (error == std::errc() && end == words[i].data() + words[i].size()) *targets[i] = value;
  }
  return load;
}

}  // namespace cohort::monitor
