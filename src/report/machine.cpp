#include "report/machine.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include <sys/utsname.h>
#include <unistd.h>

#include "cohort_version.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/markup.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

std::string trimmed(const std::string& text, const char* what = " \t\r\n\"") {
  const std::size_t begin = text.find_first_not_of(what);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(what) - begin + 1);
}

/// The value of the first line "key<blanks><separator>value" of a file, or "".
std::string value_in(const fs::path& file, const std::string& key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(separator);
    if (at != std::string::npos && trimmed(line.substr(0, at)) == key) return trimmed(line.substr(at + 1));
  }
  return "";
}

int count_lines_with_key(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  int count = 0;
  for (std::string line; std::getline(in, line);)
    if (trimmed(line.substr(0, line.find(':'))) == key) ++count;
  return count;
}

std::string cpu_name(const std::string& root) {
  for (const char* key : {"model name", "Model", "Processor"}) {  // x86; some ARM boards
    const std::string name = value_in(root + "/proc/cpuinfo", key, ':');
    if (!name.empty()) return name;
  }
  const std::string implementer = value_in(root + "/proc/cpuinfo", "CPU implementer", ':');
  if (implementer.empty()) return "";
  return format("CPU implementer {}, part {}", implementer, value_in(root + "/proc/cpuinfo", "CPU part", ':'));
}

/// The driver lists its GPUs in folders named by PCI bus.
std::vector<std::string> gpus_of_driver(const std::string& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root + "/proc/driver/nvidia/gpus", error)) folders.push_back(entry);
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    const std::string name = value_in(folder / "information", "Model", ':');
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ...": the first word of digits and dots.
std::string driver_version(const std::string& root) {
  const std::string line = value_in(root + "/proc/driver/nvidia/version", "NVRM version", ':');
  std::size_t begin = 0;
  while (begin < line.size()) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
    begin = end + 1;
  }
  return "";
}

std::string compiler_text() {
#if defined(__clang__)
  const std::string name = format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  const std::string name = format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  const std::string name = "unknown compiler";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return name + ", with sanitizers (slow)";
#elif defined(__OPTIMIZE__)
  return name + ", optimised";
#else
  return name + ", not optimised (slow)";
#endif
}

/// {"A", "A", "B"} as "2 x A, B".
std::string grouped(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size();) {
    std::size_t same = 1;
    while (i + same < names.size() && names[i + same] == names[i]) ++same;
    text += format("{}{}{}", text.empty() ? "" : ", ", same > 1 ? format("{} x ", same) : "", names[i]);
    i += same;
  }
  return text;
}

}  // namespace

Machine describe_machine(const MachineExtras& extras, const std::string& root) {
  Machine m;
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) m.host = host;
  m.cpu = cpu_name(root);
  m.cores = count_lines_with_key(root + "/proc/cpuinfo", "processor");
  if (m.cores == 0) m.cores = static_cast<int>(std::thread::hardware_concurrency());
  m.usable_cores = extras.usable_cores;
  const std::string memory = value_in(root + "/proc/meminfo", "MemTotal", ':');
  double kilobytes = 0;
  std::from_chars(memory.data(), memory.data() + memory.size(), kilobytes);
  m.memory_bytes = kilobytes * 1024;
  m.gpus = extras.gpus.empty() ? gpus_of_driver(root) : extras.gpus;
  m.gpu_driver = extras.gpu_driver.empty() ? driver_version(root) : extras.gpu_driver;
  m.system = value_in(root + "/etc/os-release", "PRETTY_NAME", '=');
  utsname kernel{};
  if (::uname(&kernel) == 0)
    m.system += format("{}{} {} {}", m.system.empty() ? "" : ", ", kernel.sysname, kernel.release, kernel.machine);
  m.compiler = compiler_text();
  m.cohort_version = COHORT_VERSION;
  m.revision = build_revision();
  m.libtorch = extras.libtorch;
  return m;
}

std::vector<std::pair<std::string, std::string>> Machine::rows() const {
  std::vector<std::pair<std::string, std::string>> rows;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.emplace_back(name, value);
  };
  add("host", host);
  add("CPU", cpu);
  if (cores > 0)
    add("cores",
        usable_cores > 0 && usable_cores != cores ? format("{}, {} usable", cores, usable_cores) : format("{}", cores));
  if (memory_bytes > 0) add("memory", format_bytes(memory_bytes));
  add("GPUs", gpus.empty() ? "none" : grouped(gpus));
  add("GPU driver", gpu_driver);
  add("system", system);
  add("Cohort", format("{} ({})", cohort_version, revision));
  add("LibTorch", libtorch);
  add("compiler", compiler);
  return rows;
}

std::string Machine::to_text() const {
  std::string text;
  for (const auto& [name, value] : rows()) text += name + ": " + value + "\n";
  return text;
}

std::string Machine::to_json() const {
  nlohmann::ordered_json json;
  json["host"] = clean_utf8(host);
  json["cpu"] = clean_utf8(cpu);
  json["cores"] = cores;
  json["usable_cores"] = usable_cores > 0 ? nlohmann::ordered_json(usable_cores) : nlohmann::ordered_json();
  json["memory_bytes"] = memory_bytes;
  json["gpus"] = nlohmann::ordered_json::array();
  for (const std::string& gpu : gpus) json["gpus"].push_back(clean_utf8(gpu));
  json["gpu_driver"] = gpu_driver;
  json["system"] = clean_utf8(system);
  json["compiler"] = compiler;
  json["cohort_version"] = cohort_version;
  json["revision"] = revision;
  json["libtorch"] = libtorch;
  return json_text(json, 2);
}

}  // namespace cohort::report
