// The CUDA driver API, opened at run time: what this process may use. Declared here rather than through cuda.h, so that
// every build can look; tests/core/devices_abi_test.cpp holds the declarations against cuda.h where that is present.
#include "core/devices_cuda.h"

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdio>

#include <dlfcn.h>

#include "core/devices_probe.h"
#include "core/format.h"

namespace cohort {
namespace {

/// Why cuInit refused, and what helps.
std::string explain(int code, const char* name) {
  switch (code) {
    case 34:
      return "libcuda.so.1 is the toolkit's stub, not a driver: take the folder 'stubs' out of LD_LIBRARY_PATH";
    case 100:
      return "the CUDA driver finds no device";
    case 101:
      return "CUDA refuses CUDA_VISIBLE_DEVICES: an entry is repeated or names no device";
    case 802:
      return "the driver is not ready yet (on NVSwitch machines nvidia-fabricmanager must run)";
    case 803:
      return "the kernel module and libcuda.so.1 are of different versions: reboot, or reload the nvidia modules";
    case 804:
      return "the CUDA forward-compatibility libraries do not support this GPU: take them out of LD_LIBRARY_PATH";
    case 999:
      return "the driver reports an unknown error: see dmesg (after a suspend, reload the module nvidia_uvm)";
    default:
      return format("cuInit failed with {} ({})", name ? name : "an unknown error", code);
  }
}

std::string uuid_text(const std::array<unsigned char, 16>& bytes) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += format("{:02x}", bytes[i]);
  }
  return text;
}

template <class Function>
bool resolve(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

CudaReport probe_cuda() {
  CudaReport report;
  // Never closed: the driver starts threads.
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    report.failure = "libcuda.so.1 cannot be opened";
    return report;
  }
  report.library = true;
  cuda_abi::Init* init;
  cuda_abi::DriverGetVersion* driver_get_version;
  cuda_abi::GetErrorName* get_error_name;
  cuda_abi::DeviceGetCount* get_count;
  cuda_abi::DeviceGet* get;
  cuda_abi::DeviceGetName* get_name;
  cuda_abi::DeviceTotalMem* total_mem;
  cuda_abi::DeviceGetAttribute* get_attribute;
  cuda_abi::DeviceGetPCIBusId* get_pci_bus_id;
  cuda_abi::DeviceGetUuid* get_uuid;
  if (!resolve(library, "cuInit", &init) || !resolve(library, "cuDriverGetVersion", &driver_get_version) ||
      !resolve(library, "cuGetErrorName", &get_error_name) || !resolve(library, "cuDeviceGetCount", &get_count) ||
      !resolve(library, "cuDeviceGet", &get) || !resolve(library, "cuDeviceGetName", &get_name) ||
      !resolve(library, "cuDeviceTotalMem_v2", &total_mem) ||
      !resolve(library, "cuDeviceGetAttribute", &get_attribute) ||
      !resolve(library, "cuDeviceGetPCIBusId", &get_pci_bus_id) ||
      // _v2 tells the slices of a GPU in MIG mode apart (CUDA 11.4); older drivers have the first version only.
      (!resolve(library, "cuDeviceGetUuid_v2", &get_uuid) && !resolve(library, "cuDeviceGetUuid", &get_uuid))) {
    report.failure = "libcuda.so.1 lacks functions that every driver since CUDA 9.2 has";
    return report;
  }
  driver_get_version(&report.version);
  if (const int code = init(0); code != 0) {
    const char* name = nullptr;
    get_error_name(code, &name);
    report.failure = explain(code, name);
    return report;
  }
  int count = 0;
  if (const int code = get_count(&count); code != 0) {
    report.failure = format("cuDeviceGetCount failed ({})", code);
    return report;
  }
  for (int index = 0; index < count; ++index) {
    GpuDevice device;
    int handle = 0;
    if (get(&handle, index) != 0) continue;
    device.seen_by_cuda = true;
    device.cuda_index = index;
    char text[256] = "";
    if (get_name(text, sizeof text, handle) == 0) device.name = text;
    std::size_t bytes = 0;
    if (total_mem(&bytes, handle) == 0) device.memory_total = bytes;
    get_attribute(&device.capability_major, cuda_abi::kComputeCapabilityMajor, handle);
    get_attribute(&device.capability_minor, cuda_abi::kComputeCapabilityMinor, handle);
    char pci[32] = "";
    if (get_pci_bus_id(pci, sizeof pci, handle) == 0) device.pci_bus_id = normal_pci_bus_id(pci);
    std::array<unsigned char, 16> uuid{};
    if (get_uuid(uuid.data(), handle) == 0) device.uuid = uuid_text(uuid);
    report.devices.push_back(std::move(device));
  }
  return report;
}

std::string normal_pci_bus_id(const std::string& text) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text.c_str(), "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) return "";
  return format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, slot, function);
}

}  // namespace cohort
