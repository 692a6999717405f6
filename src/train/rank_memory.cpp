#include "train/rank_memory.h"

#include <fstream>
#include <optional>

#include <unistd.h>

#include <ATen/DeviceAccelerator.h>

namespace cohort::train {

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0.0, resident = 0.0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

namespace {

/// Of all of the allocator's pools. Empty where it keeps no such figures, as Metal's, and before its first use, when it
/// throws at the question.
std::optional<c10::CachingDeviceAllocator::Stat> allocated_on(c10::Device device) {
  if (!device.is_cuda() || !at::getDeviceAllocator(device.type())->initialized()) return std::nullopt;
  return at::accelerator::getDeviceStats(device.has_index() ? device.index() : 0).allocated_bytes[0];
}

}  // namespace

double device_bytes(c10::Device device) {
  const auto stat = allocated_on(device);
  return stat ? static_cast<double>(stat->current) : 0.0;
}

double peak_device_bytes(c10::Device device) {
  const auto stat = allocated_on(device);
  return stat ? static_cast<double>(stat->peak) : 0.0;
}

}  // namespace cohort::train
