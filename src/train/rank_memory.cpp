#include "train/rank_memory.h"

#include <fstream>

#include <unistd.h>

#include <ATen/DeviceAccelerator.h>

namespace cohort::train {

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0.0, resident = 0.0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double peak_device_bytes(c10::Device device) {
  if (!device.is_cuda()) return 0.0;
  const auto stats = at::accelerator::getDeviceStats(device.has_index() ? device.index() : 0);
  return static_cast<double>(stats.allocated_bytes[0].peak);
}

}  // namespace cohort::train
