// NVML, opened at run time: every GPU of the machine, whatever the mask. Signatures: NVIDIA's NVML API Reference.
#include <cstddef>

#include <dlfcn.h>

#include "core/devices_cuda.h"
#include "core/devices_probe.h"
#include "core/format.h"

namespace cohort {
namespace {

struct Memory {
  unsigned long long total, free, used;  // bytes
};

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(offsetof(PciInfo, bus_id) == 36 && sizeof(PciInfo) == 68, "nvmlPciInfo_t, version 3");

using Device = struct NvmlDevice*;

struct Library {
  void* handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*capability)(Device, int*, int*) = nullptr;
  int (*pci_info)(Device, PciInfo*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  // Absent from old drivers:
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  int (*mig_count)(Device, unsigned*) = nullptr;
  int (*mig_by_index)(Device, unsigned, Device*) = nullptr;

  bool open() {
    handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    return handle != nullptr;
  }
  template <class Function>
  bool load(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(handle, symbol));
    return function != nullptr;
  }
  bool load_all() {
    load(mig_mode, "nvmlDeviceGetMigMode");
    load(mig_count, "nvmlDeviceGetMaxMigDeviceCount");
    load(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex");
    return load(init, "nvmlInit_v2") && load(shutdown, "nvmlShutdown") && load(error_string, "nvmlErrorString") &&
           load(driver_version, "nvmlSystemGetDriverVersion") && load(count, "nvmlDeviceGetCount_v2") &&
           load(by_index, "nvmlDeviceGetHandleByIndex_v2") && load(name, "nvmlDeviceGetName") &&
           load(memory, "nvmlDeviceGetMemoryInfo") && load(capability, "nvmlDeviceGetCudaComputeCapability") &&
           load(pci_info, "nvmlDeviceGetPciInfo_v3") && load(uuid, "nvmlDeviceGetUUID");
  }
};

std::string uuid_of(const Library& nvml, Device device) {
  char text[96] = "";
  return nvml.uuid(device, text, sizeof text) == 0 ? text : "";
}

}  // namespace

NvmlReport probe_nvml() {
  NvmlReport report;
  Library nvml;
  if (!nvml.open()) {
    report.failure = "libnvidia-ml.so.1 cannot be opened";
    return report;
  }
  report.library = true;
  if (!nvml.load_all()) {
    report.failure = "libnvidia-ml.so.1 lacks functions that every driver since version 410 has";
    return report;
  }
  if (const int code = nvml.init(); code != 0) {
    const char* text = nvml.error_string(code);
    // 9: NVML_ERROR_DRIVER_NOT_LOADED, 18: NVML_ERROR_LIB_RM_VERSION_MISMATCH
    report.failure = format("NVML cannot start: {}{}", text ? text : "unknown error",
                            code == 9    ? " (load the nvidia kernel module)"
                            : code == 18 ? " (reboot, or reload the nvidia kernel modules)"
                                         : "");
    return report;
  }
  char version[80] = "";
  if (nvml.driver_version(version, sizeof version) == 0) report.driver_version = version;
  unsigned count = 0;
  nvml.count(&count);
  for (unsigned index = 0; index < count; ++index) {
    Device handle = nullptr;
    // A GPU that has fallen off the bus, or that the container's device group denies, cannot be opened.
    if (nvml.by_index(index, &handle) != 0) continue;
    GpuDevice device;
    device.seen_by_nvml = true;
    device.nvml_index = static_cast<int>(index);
    char name[96] = "";
    if (nvml.name(handle, name, sizeof name) == 0) device.name = name;
    Memory memory{};
    if (nvml.memory(handle, &memory) == 0) {
      device.memory_total = memory.total;
      device.memory_free = memory.free;
    }
    nvml.capability(handle, &device.capability_major, &device.capability_minor);
    PciInfo pci{};
    if (nvml.pci_info(handle, &pci) == 0) device.pci_bus_id = normal_pci_bus_id(pci.bus_id);
    device.uuid = uuid_of(nvml, handle);
    unsigned mig = 0, pending = 0, slices = 0;
    if (nvml.mig_mode && nvml.mig_count && nvml.mig_by_index && nvml.mig_mode(handle, &mig, &pending) == 0 &&
        mig == 1 && nvml.mig_count(handle, &slices) == 0) {
      for (unsigned slice = 0; slice < slices; ++slice) {
        Device slice_handle = nullptr;
        if (nvml.mig_by_index(handle, slice, &slice_handle) == 0)
          report.mig.push_back({uuid_of(nvml, slice_handle), static_cast<int>(report.devices.size())});
      }
    }
    report.devices.push_back(std::move(device));
  }
  nvml.shutdown();
  return report;
}

}  // namespace cohort
