/// The devices that a training or a policy may use: what was named is held against what LibTorch sees here, before
/// anything is computed or written.
#pragma once
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/devices.h"

namespace cohort::dist {

struct DeviceWish {
  Backend backend = Backend::kGpu;
  std::vector<std::string> names;  ///< "cuda:1", "cpu", ...; empty: all devices of the backend
  int local_rank = 0;              ///< of this process, for the GPU that it must find
};

/// The devices of this process. Loads the CUDA plug-in where one of them is a CUDA device, so it must come before
/// anything asks LibTorch about CUDA. Without names, kGpu takes the CPU where no GPU can be used, and warns with the
/// reason. Throws Error for a device that is not there or not of the backend, and for a forced backend that is absent.
std::vector<DeviceId> usable_devices(const DeviceWish& wish);

/// Throws Error with the reason unless LibTorch can use `device` in this process. Loads the CUDA plug-in for a CUDA
/// device.
void check_device(DeviceId device);

}  // namespace cohort::dist
