#include "doctor/recorded_machine.h"

#include <algorithm>
#include <sstream>

#include "core/files.h"
#include "monitor/host_text.h"

namespace cohort::doctor {
namespace fs = std::filesystem;

std::string fact(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  std::string text = read_file_if_there(path).value_or("");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> nvidia_on_pci(const fs::path& root) {
  std::vector<std::string> found;
  const fs::path devices = root / "sys/bus/pci/devices";
  for (const std::string& address : names_in(devices))
    if (fact(devices / address / "vendor") == "0x10de" && fact(devices / address / "class").starts_with("0x03"))
      found.push_back(address);
  return found;
}

std::string kernel_module_version(const fs::path& root) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Wed ..." or "... Open Kernel Module for x86_64  580..."
  const std::string text = fact(root / "proc/driver/nvidia/version");
  const std::string_view first_line = std::string_view(text).substr(0, text.find('\n'));
  for (const std::string_view word : monitor::split_words(first_line)) {
    const bool digits = word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (digits && word.find('.') != std::string_view::npos) return std::string(word);
  }
  return "";
}

std::string container_sign(const fs::path& root) {
  std::error_code error;
  for (const char* sign : {".dockerenv", "run/.containerenv"})
    if (fs::exists(root / sign, error)) return std::string("/") + sign;
  const std::string groups = fact(root / "proc/1/cgroup");
  for (const char* word : {"docker", "kubepods", "containerd", "libpod", "lxc"})
    if (groups.find(word) != std::string::npos) return "/proc/1/cgroup names " + std::string(word);
  return "";
}

bool at_least(const std::string& version, const std::string& least) {
  std::istringstream a(version), b(least);
  for (std::string wanted; std::getline(b, wanted, '.');) {
    std::string present;
    std::getline(a, present, '.');
    const auto x = monitor::parse_count(present).value_or(0), y = monitor::parse_count(wanted).value_or(0);
    if (x != y) return x > y;
  }
  return true;
}

}  // namespace cohort::doctor
