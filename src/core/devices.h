/// The devices of this machine, which of them this process may use, and the one it has chosen.
///
///   cohort::initialise({.backend = cohort::parse_backend("gpu")});   // once, early
///   cohort::device();    // DeviceId{kCuda, 1}
///   cohort::backend();   // Backend::kCuda
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/array_view.h"

namespace cohort {

class DeviceProbe;

/// kGpu asks for the best backend present (CUDA, else Metal, else the CPU with a line that says so); the others are
/// forced.
enum class Backend : std::uint8_t { kGpu, kCuda, kMetal, kCpu };

/// "gpu", "cuda", "metal", "cpu".
const char* backend_name(Backend backend);
/// Reads one of the four names; throws Error listing them.
Backend parse_backend(const std::string& text);

/// COHORT_BACKEND where it is set (`cohort launch --cpu` sets it for its ranks), else kGpu. Throws Error for an unknown name.
Backend default_backend();

/// One GPU, as the libraries describe it together. A value that no library gave is 0, -1 or "".
struct GpuDevice {
  Backend kind = Backend::kCuda;   ///< kCuda or kMetal
  std::string name;                ///< "NVIDIA H100 80GB HBM3"
  std::uint64_t memory_total = 0;  ///< bytes
  std::uint64_t memory_free = 0;   ///< bytes at the time of asking; NVML knows it, CUDA would need a context for it
  int capability_major = 0;        ///< compute capability 9.0: major 9, minor 0
  int capability_minor = 0;
  std::string pci_bus_id;  ///< "0000:3b:00.0", lower case
  std::string uuid;        ///< "GPU-8932f937-...", or "MIG-..." for a slice of one
  int cuda_index = -1;     ///< its place among the devices CUDA shows this process: the 1 of "cuda:1"
  int nvml_index = -1;     ///< its place on the machine in PCI order, as nvidia-smi counts
  int egl_index = -1;      ///< its place in eglQueryDevicesEXT, which no CUDA mask filters
  bool egl_exact = false;  ///< egl_index was found by UUID or PCI bus, not assumed to be nvml_index
  bool seen_by_cuda = false;
  bool seen_by_nvml = false;
};

/// What there is, and why not more.
struct DeviceListing {
  std::vector<GpuDevice> visible;   ///< usable by this process, in CUDA's order
  std::vector<GpuDevice> hidden;    ///< on the machine, but behind the mask or not shown by CUDA
  std::optional<std::string> mask;  ///< CUDA_VISIBLE_DEVICES of this process
  std::string driver_version;       ///< "580.65.06"
  int cuda_version = 0;             ///< the newest CUDA that the driver runs: 13000 is 13.0
  std::string absence;              ///< why `visible` is empty, with the remedy; "" when it is not
  std::vector<std::string>
      notes;  ///< what else a user should know (libraries that disagree, entries that were ignored)
};

/// How much list_devices asks for.
struct ListSettings {
  bool initialise_cuda = true;  ///< false: only when NVML cannot tell the order; cuInit costs up to a second
  bool egl = true;              ///< find the EGL index of every visible GPU
};

/// Asks the CUDA driver, NVML, EGL and Metal, each opened at run time. Never throws for an absent library: absence says
/// why.
DeviceListing list_devices(const ListSettings& settings = {});
/// The same from another source of facts; tests describe machines with many GPUs this way.
DeviceListing list_devices(DeviceProbe& probe, const ListSettings& settings = {});

/// The backends that can be used with this listing, best first; kCpu is always the last.
std::vector<Backend> present_backends(const DeviceListing& listing);

/// Oldest CUDA driver version (13000 is 13.0) that runs this build's LibTorch; 0 without LibTorch. Within one major
/// version an older driver runs a newer library (NVIDIA, "CUDA Compatibility", minor version compatibility).
extern const int kMinimumCudaVersion;

struct InitialiseSettings {
  Backend backend = Backend::kGpu;
  int local_rank = -1;  ///< which of the visible GPUs; -1: LOCAL_RANK, else 0
  int minimum_cuda_version = kMinimumCudaVersion;
  std::string cuda_unusable;  ///< set by a caller whose library cannot use CUDA: the reason, shown to the user
};

/// A device and why it was chosen.
struct DeviceChoice {
  Backend backend = Backend::kCpu;  ///< never kGpu
  DeviceId device{};
  std::string explanation;  ///< one line, for the log and the banner
  bool fell_back = false;   ///< gpu was asked for and the CPU was taken
};

/// Picks the device of a rank. A GPU is taken by local rank; a process that sees a single GPU through a mask takes it
/// whatever its local rank (each rank has its own mask then). Throws Error when a forced backend is absent, naming what
/// is present and why the other is not, and when there are fewer GPUs than ranks.
DeviceChoice choose_device(const DeviceListing& listing, const InitialiseSettings& settings);

/// Chooses, logs the choice (a fallback as a warning) and remembers it. A second call with another result is an Error.
const DeviceChoice& initialise(const InitialiseSettings& settings = {});
const DeviceChoice& initialise(const InitialiseSettings& settings, DeviceProbe& probe);

/// The device and backend chosen by initialise; Error before it.
DeviceId device();
Backend backend();
bool initialised();
/// Forgets the choice, so that initialise may choose again.
void forget_device();

}  // namespace cohort
