#include "monitor/gpu_figures.h"

#include <dlfcn.h>

#include "core/format.h"

namespace cohort::monitor {
/// The part of NVML's binary interface that is used here. It is stable: functions whose structures changed carry a
/// suffix (_v2, _v3), and old ones stay. Named, since GCC 13 breaks down over pointers to functions of nameless types
/// where this source is one of a batch.
namespace nvml {

using Return = int;
struct DeviceHandle;
using Device = DeviceHandle*;
constexpr Return kSuccess = 0;
constexpr int kTemperatureOfChip = 0;
constexpr int kClockOfSm = 1;
constexpr int kClockOfMemory = 2;
constexpr unsigned kTextSize = 96;  // the longest text NVML writes, a UUID

struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

/// nvmlProcessInfo_t since version 2 of the functions.
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
constexpr Return kInsufficientSize = 7;
constexpr unsigned long long kNotAvailable = ~0ull;
constexpr int kUncorrected = 1, kSinceDriverLoaded = 0;
constexpr int kPeerRead = 0, kPeerOk = 0;

struct SlowdownBit {
  unsigned long long bit;
  const char* name;
};
/// nvmlClocksEventReasons. Idle (0x1) is left out: an idle GPU is not held back.
constexpr SlowdownBit kSlowdowns[] = {
    {0x002, "application clocks setting"}, {0x004, "power cap"},
    {0x008, "hardware slowdown"},          {0x010, "sync boost group"},
    {0x020, "software thermal slowdown"},  {0x040, "hardware thermal slowdown"},
    {0x080, "hardware power brake"},       {0x100, "display clock setting"},
};

}  // namespace nvml
using namespace nvml;

struct GpuMonitor::Library {
  void* handle = nullptr;
  bool initialized = false;

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*system_driver_version)(char*, unsigned) = nullptr;
  Return (*device_count)(unsigned*) = nullptr;
  Return (*device_by_index)(unsigned, Device*) = nullptr;
  Return (*device_name)(Device, char*, unsigned) = nullptr;
  Return (*device_uuid)(Device, char*, unsigned) = nullptr;
  Return (*device_pci)(Device, PciInfo*) = nullptr;
  Return (*device_memory)(Device, MemoryInfo*) = nullptr;
  Return (*device_utilization)(Device, Utilization*) = nullptr;
  Return (*device_power)(Device, unsigned*) = nullptr;
  Return (*device_power_limit)(Device, unsigned*) = nullptr;
  Return (*device_temperature)(Device, int, unsigned*) = nullptr;
  Return (*device_clock)(Device, int, unsigned*) = nullptr;
  Return (*device_slowdowns)(Device, unsigned long long*) = nullptr;

  Return (*device_processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Return (*device_pcie_width)(Device, unsigned*) = nullptr;
  Return (*device_pcie_width_max)(Device, unsigned*) = nullptr;
  Return (*device_memory_errors)(Device, int, int, unsigned long long*) = nullptr;
  Return (*peer_status)(Device, Device, int, int*) = nullptr;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (initialized && shutdown) shutdown();
    if (handle) ::dlclose(handle);
  }

  template <class Function>
  bool find(Function& function, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      function = reinterpret_cast<Function>(::dlsym(handle, name));
      if (function) return true;
    }
    return false;
  }

  /// The name of the first function that is missing and cannot be done without, or nullptr.
  const char* find_all() {
    // What only some drivers have may stay null.
    find(error_string, {"nvmlErrorString"});
    find(system_driver_version, {"nvmlSystemGetDriverVersion"});
    find(device_name, {"nvmlDeviceGetName"});
    find(device_uuid, {"nvmlDeviceGetUUID"});
    find(device_pci, {"nvmlDeviceGetPciInfo_v3"});
    find(device_memory, {"nvmlDeviceGetMemoryInfo"});
    find(device_utilization, {"nvmlDeviceGetUtilizationRates"});
    find(device_power, {"nvmlDeviceGetPowerUsage"});
    find(device_power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
    find(device_temperature, {"nvmlDeviceGetTemperature"});
    find(device_clock, {"nvmlDeviceGetClockInfo"});
    find(device_slowdowns, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
    find(device_processes, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
    find(device_pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
    find(device_pcie_width_max, {"nvmlDeviceGetMaxPcieLinkWidth"});
    find(device_memory_errors, {"nvmlDeviceGetTotalEccErrors"});
    find(peer_status, {"nvmlDeviceGetP2PStatus"});
    if (!find(init, {"nvmlInit_v2"})) return "nvmlInit_v2";
    if (!find(shutdown, {"nvmlShutdown"})) return "nvmlShutdown";
    if (!find(device_count, {"nvmlDeviceGetCount_v2"})) return "nvmlDeviceGetCount_v2";
    if (!find(device_by_index, {"nvmlDeviceGetHandleByIndex_v2"})) return "nvmlDeviceGetHandleByIndex_v2";
    return nullptr;
  }

  std::string describe(Return code) const {
    const char* text = error_string ? error_string(code) : nullptr;
    return text ? std::string(text) : format("NVML error {}", code);
  }

  GpuFigures figures(int index) const;
  std::optional<std::vector<GpuProcess>> processes(Device device) const;
};

std::optional<std::vector<GpuProcess>> GpuMonitor::Library::processes(Device device) const {
  if (!device_processes) return {};
  std::vector<ProcessInfo> infos(16);
  auto count = static_cast<unsigned>(infos.size());
  Return code = device_processes(device, &count, infos.data());
  if (code == kInsufficientSize) {  // processes may begin in between
    infos.resize(count + 16);
    count = static_cast<unsigned>(infos.size());
    code = device_processes(device, &count, infos.data());
  }
  if (code != kSuccess) return {};
  std::vector<GpuProcess> found;
  for (unsigned i = 0; i < count && i < infos.size(); ++i) {
    GpuProcess process{.pid = infos[i].pid, .memory = {}};
    if (infos[i].memory != kNotAvailable) process.memory = infos[i].memory;
    found.push_back(process);
  }
  return found;
}

GpuFigures GpuMonitor::Library::figures(int index) const {
  GpuFigures gpu;
  gpu.index = index;
  Device device = nullptr;
  if (device_by_index(static_cast<unsigned>(index), &device) != kSuccess) return gpu;

  char text[kTextSize] = {};
  if (device_name && device_name(device, text, kTextSize) == kSuccess) gpu.name = text;
  if (device_uuid && device_uuid(device, text, kTextSize) == kSuccess) gpu.uuid = text;
  PciInfo pci{};
  if (device_pci && device_pci(device, &pci) == kSuccess) gpu.pci_bus = pci.bus_id;

  MemoryInfo memory{};
  if (device_memory && device_memory(device, &memory) == kSuccess) {
    gpu.memory_used = memory.used;
    gpu.memory_total = memory.total;
  }
  Utilization utilization{};
  if (device_utilization && device_utilization(device, &utilization) == kSuccess) {
    gpu.utilization = static_cast<int>(utilization.gpu);
    gpu.memory_utilization = static_cast<int>(utilization.memory);
  }
  unsigned value = 0;
  constexpr double kMilliwatt = 1e-3;
  if (device_power && device_power(device, &value) == kSuccess) gpu.power = value * kMilliwatt;
  if (device_power_limit && device_power_limit(device, &value) == kSuccess) gpu.power_limit = value * kMilliwatt;
  if (device_temperature && device_temperature(device, kTemperatureOfChip, &value) == kSuccess)
    gpu.temperature = static_cast<int>(value);
  if (device_clock && device_clock(device, kClockOfSm, &value) == kSuccess) gpu.sm_clock = static_cast<int>(value);
  if (device_clock && device_clock(device, kClockOfMemory, &value) == kSuccess)
    gpu.memory_clock = static_cast<int>(value);
  unsigned long long bits = 0;
  if (device_slowdowns && device_slowdowns(device, &bits) == kSuccess) {
    gpu.slowed_by.emplace();
    for (const SlowdownBit& slowdown : kSlowdowns)
      if (bits & slowdown.bit) gpu.slowed_by->push_back(slowdown.name);
  }
  gpu.processes = processes(device);
  if (device_pcie_width && device_pcie_width(device, &value) == kSuccess) gpu.pcie_width = static_cast<int>(value);
  if (device_pcie_width_max && device_pcie_width_max(device, &value) == kSuccess)
    gpu.pcie_width_max = static_cast<int>(value);
  if (device_memory_errors && device_memory_errors(device, kUncorrected, kSinceDriverLoaded, &bits) == kSuccess)
    gpu.uncorrected_errors = bits;
  return gpu;
}

GpuMonitor::GpuMonitor(const std::string& library) {
  auto opened = std::make_unique<Library>();
  opened->handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened->handle) {
    const char* why = ::dlerror();
    reason_ = format("no NVIDIA driver: {}", why ? why : library);
    return;
  }
  if (const char* missing = opened->find_all()) {
    reason_ = format("{} has no {}: the NVIDIA driver is too old", library, missing);
    return;
  }
  const Return code = opened->init();
  if (code != kSuccess) {
    reason_ = format("NVML does not start: {}", opened->describe(code));
    return;
  }
  opened->initialized = true;
  library_ = std::move(opened);
}

GpuMonitor::~GpuMonitor() = default;

bool GpuMonitor::available() const {
  return library_ != nullptr;
}

const std::string& GpuMonitor::unavailable_because() const {
  return reason_;
}

std::string GpuMonitor::driver_version() const {
  char text[kTextSize] = {};
  if (!library_ || !library_->system_driver_version) return "";
  return library_->system_driver_version(text, kTextSize) == kSuccess ? text : "";
}

std::vector<GpuFigures> GpuMonitor::read() const {
  std::vector<GpuFigures> gpus;
  unsigned count = 0;
  if (!library_ || library_->device_count(&count) != kSuccess) return gpus;
  for (unsigned i = 0; i < count; ++i) gpus.push_back(library_->figures(static_cast<int>(i)));
  return gpus;
}

std::optional<bool> GpuMonitor::peer_access(int from, int to) const {
  Device a = nullptr, b = nullptr;
  int status = kPeerOk;
  if (!library_ || !library_->peer_status) return {};
  if (library_->device_by_index(static_cast<unsigned>(from), &a) != kSuccess) return {};
  if (library_->device_by_index(static_cast<unsigned>(to), &b) != kSuccess) return {};
  if (library_->peer_status(a, b, kPeerRead, &status) != kSuccess) return {};
  return status == kPeerOk;
}

}  // namespace cohort::monitor
