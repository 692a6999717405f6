#include "monitor/host_cgroup.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/files.h"
#include "monitor/host_text.h"

namespace cohort::monitor {
namespace fs = std::filesystem;
namespace {

enum class Version { kOne, kTwo };

/// Where the process stands in one mounted hierarchy: its group's folder, and the mount point, above which nothing is
/// seen.
struct Hierarchy {
  Version version;
  fs::path group;
  fs::path mount_point;
};

/// Octal escapes of /proc/self/mountinfo ("\040" is a blank).
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool contains_item(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == item) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// The process's path within a hierarchy, from /proc/self/cgroup lines "id:controllers:path".
std::optional<std::string> group_path(std::string_view cgroup_file, Version version, std::string_view controller) {
  for (const std::string_view line : split_lines(cgroup_file)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool matches = version == Version::kTwo ? line.starts_with("0::") : contains_item(controllers, controller);
    if (matches) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

/// Every mounted hierarchy that may limit `controller` ("memory" or "cpu"): one of version 1, the unified one, or both.
std::vector<Hierarchy> hierarchies(const fs::path& root, std::string_view controller) {
  std::vector<Hierarchy> found;
  const auto cgroup_file = read_file_if_there(root / "proc/self/cgroup");
  const auto mounts = read_file_if_there(root / "proc/self/mountinfo");
  if (!cgroup_file || !mounts) return found;
  for (const std::string_view line : split_lines(*mounts)) {
    // id parent major:minor root mount_point options [optional ...] - type source super_options
    const std::vector<std::string_view> words = split_words(line);
    const auto dash = std::find(words.begin(), words.end(), std::string_view("-"));
    if (words.size() < 6 || std::distance(dash, words.end()) < 4) continue;
    const std::string_view type = dash[1];
    Version version;
    if (type == "cgroup2")
      version = Version::kTwo;
    else if (type == "cgroup" && contains_item(dash[3], controller))
      version = Version::kOne;
    else
      continue;
    const auto path = group_path(*cgroup_file, version, controller);
    if (!path) continue;
    const fs::path mount_point = root / fs::path(unescaped(words[4])).relative_path();
    // In a container the mount shows a part of the tree only; a path outside of that part is seen as the mount point.
    const std::string mount_root = unescaped(words[3]);
    std::string below = *path;
    if (mount_root != "/") below = path->starts_with(mount_root + "/") ? path->substr(mount_root.size()) : "/";
    fs::path group = (mount_point / fs::path(below).relative_path()).lexically_normal();
    std::error_code ignored;
    if (below.find("..") != std::string::npos || !fs::is_directory(group, ignored)) group = mount_point;
    found.push_back({version, std::move(group), mount_point});
  }
  return found;
}

/// The group's folder and those above it, down to the mount point.
std::vector<fs::path> upwards(const Hierarchy& h) {
  std::vector<fs::path> folders;
  for (fs::path folder = h.group;; folder = folder.parent_path()) {
    folders.push_back(folder);
    if (folder == h.mount_point || folder == folder.parent_path()) return folders;
  }
}

std::optional<std::uint64_t> count_in(const fs::path& file) {
  const auto text = read_file_if_there(file);
  return text ? parse_count(*text) : std::nullopt;
}

std::uint64_t stat_value(const fs::path& file, std::string_view key) {
  const auto text = read_file_if_there(file);
  if (!text) return 0;
  const auto value = value_of(*text, key);
  return value ? parse_count(*value).value_or(0) : 0;
}

std::optional<CgroupMemory> memory_of(const fs::path& folder, Version version) {
  const bool two = version == Version::kTwo;
  const auto limit = count_in(folder / (two ? "memory.max" : "memory.limit_in_bytes"));  // "max" is no number
  if (!limit) return std::nullopt;
  const std::uint64_t charged = count_in(folder / (two ? "memory.current" : "memory.usage_in_bytes")).value_or(0);
  const std::uint64_t droppable = stat_value(folder / "memory.stat", two ? "inactive_file " : "total_inactive_file ");
  return CgroupMemory{*limit, charged - std::min(charged, droppable), folder};
}

std::optional<double> quota_of(const fs::path& folder, Version version) {
  std::optional<std::uint64_t> quota, period;
  if (version == Version::kTwo) {
    const auto text = read_file_if_there(folder / "cpu.max");  // "150000 100000" or "max 100000"
    if (!text) return std::nullopt;
    const std::vector<std::string_view> words = split_words(*text);
    if (words.size() < 2) return std::nullopt;
    quota = parse_count(words[0]);
    period = parse_count(words[1]);
  } else {
    quota = count_in(folder / "cpu.cfs_quota_us");  // -1, no count, is unlimited
    period = count_in(folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

std::optional<CgroupMemory> cgroup_memory(const fs::path& root) {
  // Version 1 says "unlimited" by a number near 2^63, in whole pages.
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;
  std::optional<CgroupMemory> smallest;
  for (const Hierarchy& h : hierarchies(root, "memory"))
    for (const fs::path& folder : upwards(h)) {
      auto memory = memory_of(folder, h.version);
      if (memory && memory->limit < kUnlimited && (!smallest || memory->limit < smallest->limit))
        smallest = std::move(memory);
    }
  return smallest;
}

std::optional<double> cgroup_cpu_quota(const fs::path& root) {
  std::optional<double> smallest;
  for (const Hierarchy& h : hierarchies(root, "cpu"))
    for (const fs::path& folder : upwards(h)) {
      const auto quota = quota_of(folder, h.version);
      if (quota && (!smallest || *quota < *smallest)) smallest = quota;
    }
  return smallest;
}

}  // namespace cohort::monitor
