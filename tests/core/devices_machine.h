/// Machines described as data: what each library would say on them. CUDA's answer is written out by hand for each mask,
/// following the CUDA C++ Programming Guide, so that no test computes it with the code under test.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/devices_probe.h"

namespace cohort::testing {

struct MachineGpu {
  std::string name;
  std::string uuid;
  std::string pci;
};

class Machine : public DeviceProbe {
 public:
  /// GPUs in PCI order.
  explicit Machine(std::vector<MachineGpu> gpus) : gpus_(std::move(gpus)) { show_all(); }

  /// A machine of n equal GPUs "GPU-<i>000-...".
  static Machine uniform(int n) {
    std::vector<MachineGpu> gpus;
    for (int i = 0; i < n; ++i)
      gpus.push_back({"NVIDIA H100 80GB HBM3",
                      "GPU-" + std::to_string(i) + "000aaaa-0000-0000-0000-00000000000" + std::to_string(i),
                      "0000:" + std::to_string(i + 1) + "b:00.0"});
    return Machine(std::move(gpus));
  }

  /// No driver at all.
  static Machine without_driver() {
    Machine machine({});
    machine.cuda_report = {.library = false, .failure = "libcuda.so.1 cannot be opened", .version = 0, .devices = {}};
    machine.nvml_report = {.library = false,
                           .failure = "libnvidia-ml.so.1 cannot be opened",
                           .driver_version = "",
                           .devices = {},
                           .mig = {}};
    machine.on_bus = false;
    return machine;
  }

  /// Sets CUDA_VISIBLE_DEVICES and what CUDA then shows: PCI indices in CUDA's order.
  Machine& mask(const std::string& text, const std::vector<int>& shown) {
    variables["CUDA_VISIBLE_DEVICES"] = text;
    show(shown);
    return *this;
  }

  Machine& show(const std::vector<int>& shown) {
    cuda_report.devices.clear();
    for (const int at : shown) {
      const MachineGpu& gpu = gpus_[static_cast<std::size_t>(at)];
      GpuDevice device;
      device.name = gpu.name;
      device.uuid = gpu.uuid;
      device.pci_bus_id = gpu.pci;
      device.memory_total = 80ull << 30;
      device.capability_major = 9;
      device.cuda_index = static_cast<int>(cuda_report.devices.size());
      device.seen_by_cuda = true;
      cuda_report.devices.push_back(device);
    }
    return *this;
  }

  CudaReport cuda() override {
    ++cuda_calls;
    return cuda_report;
  }
  NvmlReport nvml() override { return nvml_report; }
  EglReport egl() override {
    ++egl_calls;
    return egl_report;
  }
  MetalReport metal() override { return metal_report; }
  std::optional<std::string> environment(const std::string& name) override {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }
  bool nvidia_on_pci_bus() override { return on_bus; }

  CudaReport cuda_report{.library = true, .failure = "", .version = 13000, .devices = {}};
  NvmlReport nvml_report{.library = true, .failure = "", .driver_version = "580.65.06", .devices = {}, .mig = {}};
  EglReport egl_report{.failure = "libEGL.so.1 cannot be opened", .devices = {}};
  MetalReport metal_report{.failure = "Metal exists on macOS only", .devices = {}};
  std::map<std::string, std::string> variables;
  bool on_bus = true;
  int cuda_calls = 0;
  int egl_calls = 0;

 private:
  void show_all() {
    std::vector<int> all;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      all.push_back(static_cast<int>(i));
      GpuDevice device;
      device.name = gpus_[i].name;
      device.uuid = gpus_[i].uuid;
      device.pci_bus_id = gpus_[i].pci;
      device.memory_total = 80ull << 30;
      device.memory_free = 79ull << 30;
      device.capability_major = 9;
      device.nvml_index = static_cast<int>(i);
      device.seen_by_nvml = true;
      nvml_report.devices.push_back(device);
    }
    show(all);
  }

  std::vector<MachineGpu> gpus_;
};

}  // namespace cohort::testing
