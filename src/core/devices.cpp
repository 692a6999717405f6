#include "core/devices.h"

#include <cstdlib>
#include <mutex>

#include "core/devices_cpu.h"
#include "core/devices_probe.h"
#include "core/error.h"
#include "core/log.h"

namespace cohort {
namespace {

std::string join(const std::vector<Backend>& backends) {
  std::string text;
  for (const Backend backend : backends) text += format("{}{}", text.empty() ? "" : ", ", backend_name(backend));
  return text;
}

std::string describe(const GpuDevice& gpu) {
  return format("{}{}{}", gpu.name, gpu.uuid.empty() ? "" : ", " + gpu.uuid,
                gpu.pci_bus_id.empty() ? "" : ", PCI " + gpu.pci_bus_id);
}

int rank_of_environment() {
  const char* text = std::getenv("LOCAL_RANK");
  if (!text || !*text) return 0;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  COHORT_THROW_UNLESS(*end == '\0' && value >= 0 && value < 1 << 20,
                      "LOCAL_RANK='{}' is no rank: it must be a number from 0 on, as a launcher sets it", text);
  return static_cast<int>(value);
}

/// Why the GPUs of the listing cannot be used with CUDA; "" when they can.
std::string cuda_obstacle(const DeviceListing& listing, const InitialiseSettings& settings) {
  if (listing.visible.empty()) return listing.absence;
  if (listing.visible.front().kind != Backend::kCuda) return "this machine has no NVIDIA GPU";
  if (!settings.cuda_unusable.empty()) return settings.cuda_unusable;
  if (listing.cuda_version > 0 && listing.cuda_version < settings.minimum_cuda_version)
    return format("the driver{} runs CUDA up to {}.{}, the LibTorch of this build needs {}.{}: install a newer driver",
                  listing.driver_version.empty() ? "" : " " + listing.driver_version, listing.cuda_version / 1000,
                  listing.cuda_version % 1000 / 10, settings.minimum_cuda_version / 1000,
                  settings.minimum_cuda_version % 1000 / 10);
  return "";
}

struct State {
  std::mutex mutex;
  std::optional<DeviceChoice> choice;
};

State& state() {
  static State* s = new State;
  return *s;
}

const DeviceChoice& remember(DeviceChoice choice) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.choice) {
    COHORT_THROW_UNLESS(s.choice->device == choice.device && s.choice->backend == choice.backend,
                        "this process already works on {} ({}); it cannot change to {} ({})",
                        to_string(s.choice->device), backend_name(s.choice->backend), to_string(choice.device),
                        backend_name(choice.backend));
    return *s.choice;
  }
  s.choice = std::move(choice);
  if (s.choice->fell_back)
    log::warning("{}", s.choice->explanation);
  else
    log::info("{}", s.choice->explanation);
  return *s.choice;
}

const DeviceChoice& chosen() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  COHORT_THROW_UNLESS(s.choice, "no device has been chosen yet: call cohort::initialise first");
  return *s.choice;
}

}  // namespace

const int kMinimumCudaVersion = COHORT_MINIMUM_CUDA_VERSION;

const char* backend_name(Backend backend) {
  switch (backend) {
    case Backend::kGpu:
      return "gpu";
    case Backend::kCuda:
      return "cuda";
    case Backend::kMetal:
      return "metal";
    case Backend::kCpu:
      return "cpu";
  }
  return "";
}

Backend parse_backend(const std::string& text) {
  for (const Backend backend : {Backend::kGpu, Backend::kCuda, Backend::kMetal, Backend::kCpu})
    if (text == backend_name(backend)) return backend;
  throw Error(format("'{}' is no backend: it is gpu (the best one present), cuda, metal or cpu", text));
}

Backend default_backend() {
  const char* text = std::getenv("COHORT_BACKEND");
  return text && *text ? parse_backend(text) : Backend::kGpu;
}

std::vector<Backend> present_backends(const DeviceListing& listing) {
  std::vector<Backend> backends;
  if (!listing.visible.empty()) backends.push_back(listing.visible.front().kind);
  backends.push_back(Backend::kCpu);
  return backends;
}

DeviceChoice choose_device(const DeviceListing& listing, const InitialiseSettings& settings) {
  const int rank = settings.local_rank >= 0 ? settings.local_rank : rank_of_environment();
  const bool metal = !listing.visible.empty() && listing.visible.front().kind == Backend::kMetal;
  const std::string obstacle = cuda_obstacle(listing, settings);
  std::vector<Backend> present;
  if (metal || obstacle.empty()) present.push_back(metal ? Backend::kMetal : Backend::kCuda);
  present.push_back(Backend::kCpu);

  Backend backend = settings.backend == Backend::kGpu ? present.front() : settings.backend;
  DeviceChoice choice;
  if (backend == Backend::kCuda) {
    COHORT_THROW_UNLESS(obstacle.empty(), "backend cuda cannot be used: {}. Present: {}", obstacle, join(present));
    const int count = static_cast<int>(listing.visible.size());
    // A rank that was given a mask of one device has that device, whatever its number.
    const int index = rank >= count && count == 1 && listing.mask ? 0 : rank;
    COHORT_THROW_UNLESS(
        index < count,
        "local rank {} has no GPU of its own: this process sees {}. Start at most {} rank(s) on this node, or "
        "take backend=cpu",
        rank, count, count);
    const GpuDevice& gpu = listing.visible[static_cast<std::size_t>(index)];
    choice.backend = Backend::kCuda;
    choice.device = {DeviceKind::kCuda, index};
    choice.explanation = format("backend cuda: cuda:{} is {}; {} of {} GPU(s) of this machine are visible", index,
                                describe(gpu), count, count + static_cast<int>(listing.hidden.size()));
    return choice;
  }
  if (backend == Backend::kMetal) {
    COHORT_THROW_UNLESS(metal, "backend metal cannot be used: it needs macOS with a Metal device. Present: {}",
                        join(present));
    COHORT_THROW_UNLESS(rank == 0, "local rank {} has no GPU of its own: Metal gives LibTorch one device, mps:0", rank);
    choice.backend = Backend::kMetal;
    choice.device = {DeviceKind::kMetal, 0};
    choice.explanation = format("backend metal: mps:0 is {}", listing.visible.front().name);
    return choice;
  }
  choice.backend = Backend::kCpu;
  choice.device = {DeviceKind::kCpu, 0};
  const CpuDevice cpu = host_cpu();
  const std::string host = format("{}{} core(s)", cpu.name.empty() ? "" : cpu.name + ", ", cpu.cores);
  choice.fell_back = settings.backend == Backend::kGpu;
  choice.explanation = choice.fell_back
                           ? format("backend gpu: falling back to the CPU ({}), because {}", host, obstacle)
                           : format("backend cpu: {}", host);
  return choice;
}

const DeviceChoice& initialise(const InitialiseSettings& settings, DeviceProbe& probe) {
  // A process that asks for the CPU leaves the driver alone: cuInit takes up to a second and some memory.
  const DeviceListing listing =
      settings.backend == Backend::kCpu ? DeviceListing{} : list_devices(probe, {.egl = false});
  return remember(choose_device(listing, settings));
}

const DeviceChoice& initialise(const InitialiseSettings& settings) {
  const auto probe = system_probe();
  return initialise(settings, *probe);
}

DeviceId device() {
  return chosen().device;
}
Backend backend() {
  return chosen().backend;
}

bool initialised() {
  std::lock_guard lock(state().mutex);
  return state().choice.has_value();
}

void forget_device() {
  std::lock_guard lock(state().mutex);
  state().choice.reset();
}

}  // namespace cohort
