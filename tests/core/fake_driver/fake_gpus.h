/// A machine with NVIDIA GPUs for tests on machines without: libraries under the driver's names whose GPUs are
/// described by environment variables. They let the code that opens the real libraries run.
///   COHORT_FAKE_GPUS        "name|uuid|pci|GiB|major.minor;..." in PCI order
///   COHORT_FAKE_CUDA_ORDER  "1,0": CUDA's order of them (default: PCI order)
///   COHORT_FAKE_CUINIT, COHORT_FAKE_NVMLINIT, COHORT_FAKE_CUDA_VERSION: return codes and version
///   COHORT_FAKE_EGL_ORDER   "1,0": EGL's order
#pragma once
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace fake {

struct Gpu {
  std::string name, uuid, pci;
  unsigned long long bytes = 0;
  int major = 0, minor = 0;
};

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

inline std::string variable(const char* name, const std::string& otherwise = "") {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

inline int number(const char* name, int otherwise) {
  const std::string text = variable(name);
  return text.empty() ? otherwise : std::atoi(text.c_str());
}

/// In PCI order.
inline std::vector<Gpu> gpus() {
  std::vector<Gpu> all;
  for (const std::string& line : split(variable("COHORT_FAKE_GPUS"), ';')) {
    const auto parts = split(line, '|');
    if (parts.size() != 5) std::abort();
    Gpu gpu{parts[0], parts[1], parts[2], std::strtoull(parts[3].c_str(), nullptr, 10) << 30, 0, 0};
    std::sscanf(parts[4].c_str(), "%d.%d", &gpu.major, &gpu.minor);
    all.push_back(gpu);
  }
  return all;
}

inline std::vector<int> order(const char* name, std::size_t count) {
  std::vector<int> result;
  for (const std::string& part : split(variable(name), ',')) result.push_back(std::atoi(part.c_str()));
  for (int i = 0; result.size() < count; ++i) result.push_back(i);
  return result;
}

/// The 16 bytes of "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6".
inline void uuid_bytes(const std::string& uuid, unsigned char* out) {
  std::string digits;
  for (const char c : uuid.substr(4))
    if (c != '-') digits += c;
  for (std::size_t i = 0; i < 16; ++i)
    out[i] = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
}

inline void copy(const std::string& text, char* out, unsigned size) {
  std::snprintf(out, size, "%s", text.c_str());
}

}  // namespace fake
