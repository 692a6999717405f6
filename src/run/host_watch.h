/// What the machine that a run trains on is doing beside its GPUs: for the metrics.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>

#include "monitor/processes.h"

namespace cohort::run {

/// Of all processes of the machine; what it does not tell is unset.
struct HostLoad {
  std::optional<double> busy_cores;  ///< processors at work since the reading before
  std::optional<double> load;        ///< mean over a minute
  std::optional<double> memory;      ///< bytes in use
};

class HostWatch {
 public:
  explicit HostWatch(std::filesystem::path root = "/") : root_(std::move(root)) {}
  /// The present figures, or those of the last second.
  HostLoad read();

 private:
  std::filesystem::path root_;
  std::chrono::steady_clock::time_point read_at_{};
  monitor::ProcessorTime before_;
  HostLoad last_;
};

}  // namespace cohort::run
