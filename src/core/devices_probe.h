/// Where facts about devices come from: one report per library. The system's probe opens the libraries at run time;
/// tests describe other machines by filling the reports.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/devices.h"

namespace cohort {

/// libcuda.so.1: the devices that CUDA shows this process, mask applied, in CUDA's order.
struct CudaReport {
  bool library = false;  ///< the library could be opened
  std::string failure;   ///< why there is no list; "" when `devices` is the driver's answer
  int version = 0;       ///< cuDriverGetVersion
  std::vector<GpuDevice> devices;
};

/// A slice of a GPU in MIG mode.
struct MigInstance {
  std::string uuid;  ///< "MIG-..."
  int parent = -1;   ///< index into NvmlReport::devices
};

/// libnvidia-ml.so.1: every GPU of the machine (of the container), in PCI order, whatever the mask.
struct NvmlReport {
  bool library = false;
  std::string failure;
  std::string driver_version;
  std::vector<GpuDevice> devices;
  std::vector<MigInstance> mig;
};

/// One entry of eglQueryDevicesEXT.
struct EglDevice {
  std::string uuid;        ///< "GPU-..." by EGL_EXT_device_persistent_id; "" when not told
  std::string pci_bus_id;  ///< of the DRM node by EGL_EXT_device_drm; "" when not told
  int cuda_index = -1;     ///< by EGL_NV_device_cuda; -1 when not told
};

struct EglReport {
  std::string failure;
  std::vector<EglDevice> devices;
};

struct MetalReport {
  std::string failure;
  std::vector<GpuDevice> devices;
};

class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;
  virtual CudaReport cuda() = 0;
  virtual NvmlReport nvml() = 0;
  virtual EglReport egl() = 0;
  virtual MetalReport metal() = 0;
  virtual std::optional<std::string> environment(const std::string& name) = 0;
  /// True when an NVIDIA display or compute device sits on the PCI bus, whether or not a driver runs it.
  virtual bool nvidia_on_pci_bus() = 0;
};

/// The probe of this machine.
std::unique_ptr<DeviceProbe> system_probe();

// One file each: devices_cuda.cpp, devices_nvml.cpp, devices_egl.cpp, metal/metal_devices.mm (or its absence).
CudaReport probe_cuda();
NvmlReport probe_nvml();
EglReport probe_egl();
MetalReport probe_metal();

}  // namespace cohort
