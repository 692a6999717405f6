#include "run/host_watch.h"

#include <cmath>

#include "monitor/host_figures.h"

namespace cohort::run {

HostLoad HostWatch::read() {
  const auto now = std::chrono::steady_clock::now();
  if (read_at_ != std::chrono::steady_clock::time_point{} && now - read_at_ < std::chrono::seconds(1)) return last_;
  read_at_ = now;
  last_ = {};
  const monitor::ProcessorTime time = monitor::processor_time(root_);
  if (before_.all > 0 && time.all > before_.all && time.busy >= before_.busy)
    last_.busy_cores = static_cast<double>(time.busy - before_.busy) / static_cast<double>(time.all - before_.all) *
                       monitor::host_cores(root_).online;
  before_ = time;
  if (const double load = monitor::load_average(root_).minute1; std::isfinite(load)) last_.load = load;
  const monitor::HostMemory memory = monitor::host_memory(root_);
  if (memory.total > memory.available) last_.memory = static_cast<double>(memory.total - memory.available);
  return last_;
}

}  // namespace cohort::run
