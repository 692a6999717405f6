/// The memory that this process takes, for whoever watches a training.
#pragma once
#include <c10/core/Device.h>

namespace cohort::train {

/// Resident memory now, bytes.
double resident_bytes();
/// What this process has allocated on a device, bytes, now and at most; 0 where that is the CPU, and before LibTorch's
/// first work on a device.
double device_bytes(c10::Device device);
double peak_device_bytes(c10::Device device);

}  // namespace cohort::train
