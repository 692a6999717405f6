#include "sim/host_memory.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::sim {

namespace {

namespace fs = std::filesystem;

/// The number behind a word of a file ("MemAvailable: 123 kB", "inactive_file 456"); of a file of one number, without a
/// word.
std::optional<double> number_in(const fs::path& file, const std::string& word = "") {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(word)) continue;
    try {
      return std::stod(line.substr(word.size()));
    } catch (const std::exception&) {
      return std::nullopt;  // "max"
    }
  }
  return std::nullopt;
}

/// What a group's limit leaves: pages of files that nobody reads are given back by the kernel.
double left_in_group(const fs::path& limit, const fs::path& used, const fs::path& statistics, const char* reclaimable) {
  const std::optional<double> most = number_in(limit), now = number_in(used);
  if (!most || !now) return std::numeric_limits<double>::infinity();
  return std::max(0.0, *most - *now + number_in(statistics, reclaimable).value_or(0));
}

/// What a limit of this process (`ulimit -v`, `-d`) leaves; field: of /proc/self/status, what is used of it.
double left_of_limit(int resource, const char* field) {
  rlimit limit{};
  if (getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<double>::infinity();
  }
  const double used = number_in("/proc/self/status", field).value_or(0) * 1024;
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - used);
}

}  // namespace

double available_host_memory() {
  constexpr double kKibibyte = 1024;
  double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (const auto available = number_in("/proc/meminfo", "MemAvailable:")) {
    bytes = std::min(bytes, *available * kKibibyte);
  }
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t path_at = line.find(':', line.find(':') + 1);
    if (path_at == std::string::npos) continue;
    const std::string path = line.substr(path_at + 1);
    const bool unified = line.starts_with("0::");
    if (!unified && line.find(":memory:") == std::string::npos) continue;
    // The group itself and all above it; in a container the mount may begin below what the file names.
    for (fs::path group = fs::path(path).relative_path();; group = group.parent_path()) {
      const fs::path folder = fs::path(unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") / group;
      bytes =
          std::min(bytes, unified ? left_in_group(folder / "memory.max", folder / "memory.current",
                                                  folder / "memory.stat", "inactive_file")
                                  : left_in_group(folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes",
                                                  folder / "memory.stat", "total_inactive_file"));
      if (group.empty()) break;
    }
  }
  bytes = std::min({bytes, left_of_limit(RLIMIT_AS, "VmSize:"), left_of_limit(RLIMIT_DATA, "VmData:")});
  if (const char* limit = std::getenv(kHostMemoryVariable); limit && *limit) {
    char* end = nullptr;
    const double most = std::strtod(limit, &end);
    COHORT_THROW_UNLESS(*end == 0 && most >= 0, "{}={}: a number of bytes is expected", kHostMemoryVariable, limit);
    const double own = number_in("/proc/self/status", "RssAnon:").value_or(0) * kKibibyte;
    bytes = std::min(bytes, std::max(0.0, most - own));
  }
  return bytes;
}

}  // namespace cohort::sim
