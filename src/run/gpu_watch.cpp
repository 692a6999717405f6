#include "run/gpu_watch.h"

#include <algorithm>

#include "core/devices.h"

namespace cohort::run {
namespace {

constexpr std::chrono::seconds kLeastInterval{1};  // NVML's own sampling period is 1/6 to 1 s

}  // namespace

GpuLoad load_of(const std::vector<monitor::GpuFigures>& all, const std::vector<int>& watched) {
  GpuLoad load;
  double utilizations = 0;
  int count = 0;
  for (const monitor::GpuFigures& gpu : all) {
    if (std::find(watched.begin(), watched.end(), gpu.index) == watched.end()) continue;
    if (gpu.utilization) {
      utilizations += *gpu.utilization;
      ++count;
      load.least_utilization = std::min(load.least_utilization.value_or(100), static_cast<double>(*gpu.utilization));
    }
    if (gpu.memory_used) load.memory = std::max(load.memory.value_or(0), static_cast<double>(*gpu.memory_used));
    if (gpu.power) load.power = load.power.value_or(0) + *gpu.power;
  }
  if (count > 0) load.utilization = utilizations / count;
  return load;
}

GpuWatch::GpuWatch(std::vector<int> nvml_indices, const std::string& library) : watched_(std::move(nvml_indices)) {
  if (!watched_.empty()) monitor_.emplace(library);
}

std::optional<GpuLoad> GpuWatch::read() {
  if (!monitor_ || !monitor_->available()) return {};
  const auto now = std::chrono::steady_clock::now();
  if (last_ && now - read_at_ < kLeastInterval) return last_;
  read_at_ = now;
  last_ = load_of(monitor_->read(), watched_);
  if (last_->utilization) {
    utilization_sum_ += *last_->utilization;
    ++readings_;
  }
  return last_;
}

std::optional<double> GpuWatch::mean_utilization() const {
  if (readings_ == 0) return {};
  return utilization_sum_ / static_cast<double>(readings_);
}

std::vector<int> watched_gpus(const std::vector<int>& own_cuda_indices, int local_ranks) {
  if (own_cuda_indices.empty()) return {};
  const DeviceListing listing = list_devices({.initialise_cuda = false, .egl = false});
  std::vector<int> indices;
  for (const GpuDevice& gpu : listing.visible) {
    const bool own =
        std::find(own_cuda_indices.begin(), own_cuda_indices.end(), gpu.cuda_index) != own_cuda_indices.end();
    const bool of_another_rank = local_ranks > 1 && gpu.cuda_index >= 0 && gpu.cuda_index < local_ranks;
    if (gpu.nvml_index >= 0 && (own || of_another_rank)) indices.push_back(gpu.nvml_index);
  }
  return indices;
}

}  // namespace cohort::run
