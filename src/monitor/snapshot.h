/// A machine at one moment: its GPUs, its processors and memory, and the ranks of the jobs that run on it.
///
///   monitor::Watcher watcher;
///   const monitor::Snapshot now = watcher.read();    // the second call on: how busy the processors were in between
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "monitor/gpu_figures.h"
#include "monitor/host_figures.h"
#include "monitor/processes.h"
#include "rank/status.h"

namespace cohort::monitor {

struct LocalRank {
  rank::Status status;
  std::filesystem::path run;              ///< the run's folder, as its process names it
  double cores = rank::Status::kUnknown;  ///< processors it kept busy since the last snapshot
  std::uint64_t rss = 0;                  ///< resident now, bytes
};

struct Snapshot {
  double time = 0;   ///< seconds since 1970
  std::string host;  ///< name of the machine
  HostCores cores;
  double busy_cores = rank::Status::kUnknown;  ///< of the whole machine, since the last snapshot
  LoadAverage load{};
  HostMemory memory;
  std::string driver;  ///< version; "" without one
  std::string no_gpu;  ///< why `gpus` is empty
  std::vector<GpuFigures> gpus;
  std::vector<LocalRank> ranks;  ///< by run, then rank
};

/// Host, process id and start time of this process.
void identify_process(rank::Status& status);

/// The ranks that run on this machine, as far as this user may see their processes.
std::vector<LocalRank> local_ranks(const std::filesystem::path& root = "/");

class Watcher {
 public:
  explicit Watcher(std::filesystem::path root = "/", const std::string& nvml = "libnvidia-ml.so.1");
  Snapshot read();
  const GpuMonitor& gpus() const { return gpus_; }

 private:
  struct Used {
    double cpu_s;
    double time;
  };
  std::filesystem::path root_;
  GpuMonitor gpus_;
  ProcessorTime processors_;
  std::map<std::int64_t, Used> used_;  ///< by process
};

}  // namespace cohort::monitor
