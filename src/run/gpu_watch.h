/// What the GPUs that a run trains on are doing: for the progress line, the metrics and the report.
///
///   GpuWatch watch(nvml_indices);            // none where the run is on the CPU
///   if (const auto now = watch.read()) ...   // at most once a second
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "monitor/gpu_figures.h"

namespace cohort::run {

/// Over the watched GPUs; what none of them reports is unset.
struct GpuLoad {
  std::optional<double> utilization;        ///< %, mean
  std::optional<double> least_utilization;  ///< %, of the idlest: ranks out of step show here
  std::optional<double> memory;             ///< bytes in use on the fullest, by all processes
  std::optional<double> power;              ///< W, sum
};

GpuLoad load_of(const std::vector<monitor::GpuFigures>& all, const std::vector<int>& watched);

class GpuWatch {
 public:
  /// nvml_indices: the GPUs to watch, in NVML's numbers. Empty: nothing is opened. `library` is for tests.
  explicit GpuWatch(std::vector<int> nvml_indices, const std::string& library = "libnvidia-ml.so.1");

  /// The present figures, or those of the last second; nothing where nothing is watched or NVML does not answer.
  std::optional<GpuLoad> read();
  /// The mean utilization over all readings so far, %.
  std::optional<double> mean_utilization() const;

 private:
  std::vector<int> watched_;
  std::optional<monitor::GpuMonitor> monitor_;
  std::chrono::steady_clock::time_point read_at_{};
  std::optional<GpuLoad> last_;
  double utilization_sum_ = 0;
  std::int64_t readings_ = 0;
};

/// NVML's numbers of the GPUs that the job uses on this machine, as far as this process sees them: its own (the 1 of
/// "cuda:1"), and those of the other local ranks, which are the first ones. Empty for a run on the CPU.
std::vector<int> watched_gpus(const std::vector<int>& own_cuda_indices, int local_ranks);

}  // namespace cohort::run
