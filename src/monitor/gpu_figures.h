/// Figures of NVIDIA GPUs: memory, utilisation, power, temperature, clocks, and why they are held back. From NVML (NVML
/// API reference guide), opened at run time, so that the same binary runs on machines without a driver.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cohort::monitor {

/// A process that computes on a GPU.
struct GpuProcess {
  std::int64_t pid = 0;                 ///< as the driver's own namespace counts; a container may not know it
  std::optional<std::uint64_t> memory;  ///< bytes
};

/// One GPU at one moment. What this GPU or driver does not report is unset.
struct GpuFigures {
  int index = 0;        ///< NVML's: PCI order over the whole machine, whatever CUDA_VISIBLE_DEVICES says
  std::string name;     ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;     ///< "GPU-..."
  std::string pci_bus;  ///< "00000000:1B:00.0"
  std::optional<std::uint64_t>
      memory_used;  ///< bytes, all processes, without what the driver keeps where NVML tells it apart
  std::optional<std::uint64_t> memory_total;          ///< bytes
  std::optional<int> utilization;                     ///< %, share of the last sampling period with a kernel running
  std::optional<int> memory_utilization;              ///< %, share of it with memory being read or written
  std::optional<double> power;                        ///< W
  std::optional<double> power_limit;                  ///< W, the one that is enforced
  std::optional<int> temperature;                     ///< degrees Celsius, of the chip
  std::optional<int> sm_clock;                        ///< MHz
  std::optional<int> memory_clock;                    ///< MHz
  std::optional<std::vector<std::string>> slowed_by;  ///< "power cap", "hardware thermal slowdown", ...; empty: nothing
  std::optional<std::vector<GpuProcess>> processes;
  std::optional<int> pcie_width;                    ///< lanes in use
  std::optional<int> pcie_width_max;                ///< lanes that GPU and slot could use
  std::optional<std::uint64_t> uncorrected_errors;  ///< of its memory, since the driver was loaded
};

/// An open connection to NVML. Thread-safe, as NVML is.
class GpuMonitor {
 public:
  /// Never throws; see available(). `library` is for tests.
  explicit GpuMonitor(const std::string& library = "libnvidia-ml.so.1");
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// False where there is no driver; then read() is empty and unavailable_because() says why.
  bool available() const;
  const std::string& unavailable_because() const;

  /// "580.65.06"; "" when unknown.
  std::string driver_version() const;

  /// All GPUs of the machine. A GPU that fails while being asked (it fell off the bus) is there with its index and no
  /// figures.
  std::vector<GpuFigures> read() const;

  /// Whether one of two GPUs can read the other's memory, by NVML's indices; unset where the driver does not say.
  std::optional<bool> peer_access(int from, int to) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::string reason_;
};

}  // namespace cohort::monitor
