/// The memory that this process takes, for whoever watches a training.
#pragma once
#include <c10/core/Device.h>

namespace cohort::train {

/// Resident memory now, bytes.
double resident_bytes();
/// The most that this process has had allocated on a device, bytes; 0 where that is the CPU.
double peak_device_bytes(c10::Device device);

}  // namespace cohort::train
