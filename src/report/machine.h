/// One description of the machine and the versions, for reports and benchmarks: figures mean nothing without it.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cohort::report {

/// What only the caller knows.
struct MachineExtras {
  std::vector<std::string> gpus;  ///< names, e.g. from monitor's GpuMonitor; empty: asked from the driver's /proc files
  std::string gpu_driver;         ///< version; empty: likewise
  std::string libtorch;           ///< version; empty: this program does not use it
  int usable_cores = 0;           ///< core's available_cores(); 0: unknown
};

struct Machine {
  std::string host;
  std::string cpu;          ///< "AMD EPYC 9654 96-Core Processor"
  int cores = 0;            ///< logical processors of the machine
  int usable_cores = 0;     ///< what affinity and control groups leave; 0: unknown
  double memory_bytes = 0;  ///< of the machine
  std::vector<std::string> gpus;
  std::string gpu_driver;
  std::string system;          ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
  std::string compiler;        ///< "GCC 12.2.0", and the build type
  std::string cohort_version;  ///< "0.1.0"
  std::string revision;        ///< git commit, 12 digits, with "-changed" when files differed from it; or "unknown"
  std::string libtorch;

  /// Names and values in order, without what is unknown.
  std::vector<std::pair<std::string, std::string>> rows() const;
  /// rows() as lines "name: value".
  std::string to_text() const;
  /// A JSON object.
  std::string to_json() const;
};

/// root stands before /proc, /etc and /sys (tests).
Machine describe_machine(const MachineExtras& extras = {}, const std::string& root = "");

/// The git revision that was built.
std::string build_revision();

}  // namespace cohort::report
