// The probe of this machine.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/devices_probe.h"

namespace cohort {
namespace fs = std::filesystem;
namespace {

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

class SystemProbe : public DeviceProbe {
 public:
  CudaReport cuda() override { return probe_cuda(); }
  NvmlReport nvml() override { return probe_nvml(); }
  EglReport egl() override { return probe_egl(); }
  MetalReport metal() override { return probe_metal(); }

  std::optional<std::string> environment(const std::string& name) override {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  }

  bool nvidia_on_pci_bus() override {
    std::error_code error;
    for (const auto& device : fs::directory_iterator("/sys/bus/pci/devices", error))
      // Class 0x03: display controllers, 3D controllers (data centre GPUs) among them.
      if (first_word(device.path() / "vendor") == "0x10de" && first_word(device.path() / "class").starts_with("0x03"))
        return true;
    return false;
  }
};

}  // namespace

std::unique_ptr<DeviceProbe> system_probe() {
  return std::make_unique<SystemProbe>();
}

}  // namespace cohort
