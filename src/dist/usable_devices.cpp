#include "dist/usable_devices.h"

#include "core/error.h"
#include "core/log.h"
#include "dist/cuda_plugin.h"

namespace cohort::dist {
namespace {

Backend backend_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return Backend::kCpu;
    case DeviceKind::kCuda:
      return Backend::kCuda;
    case DeviceKind::kMetal:
      return Backend::kMetal;
  }
  throw Error("unknown kind of device");
}

bool starts_with(const DeviceListing& listing, Backend kind) {
  return !listing.visible.empty() && listing.visible.front().kind == kind;
}

/// CUDA devices that LibTorch sees in this process; 0, and then why.
int cuda_devices(std::string& why) {
  try {
    std::string reason;
    const int count = load_cuda_plugin().device_count(reason);
    if (count == 0) why = format("LibTorch sees no CUDA device: {}", reason);
    return count;
  } catch (const Error& e) {
    why = e.what();
    return 0;
  }
}

/// Why `device` cannot be used; "" when it can.
std::string obstacle(DeviceId device) {
  if (device.kind == DeviceKind::kCpu) return "";
  if (device.kind == DeviceKind::kCuda) {
    // Without a driver nothing of CUDA can be loaded, and what the linker then misses is no reason that helps.
    if (const DeviceListing listing = list_devices({.initialise_cuda = false, .egl = false}); listing.visible.empty())
      return listing.absence;
    std::string why;
    const int count = cuda_devices(why);
    if (count == 0 || device.index < count) return why;
    return format("this process sees {} CUDA device{}, cuda:0{}", count, count == 1 ? "" : "s",
                  count == 1 ? std::string() : format(" to cuda:{}", count - 1));
  }
  if (!starts_with(list_devices({.initialise_cuda = false, .egl = false}), Backend::kMetal))
    return "it needs macOS with a Metal device";
  return device.index == 0 ? "" : "Metal gives LibTorch one device, mps:0";
}

}  // namespace

void check_device(DeviceId device) {
  const std::string why = obstacle(device);
  COHORT_THROW_UNLESS(why.empty(), "device {} cannot be used: {}. `cohort devices` lists what there is",
                      to_string(device), why);
}

std::vector<DeviceId> usable_devices(const DeviceWish& wish) {
  std::vector<DeviceId> devices;
  for (const std::string& name : wish.names) {
    const DeviceId device = parse_device(name);
    COHORT_THROW_UNLESS(wish.backend == Backend::kGpu || wish.backend == backend_of(device.kind),
                        "devices={} contradicts backend={} (the setting, or COHORT_BACKEND): leave one of them out",
                        name, backend_name(wish.backend));
    devices.push_back(device);
  }
  for (const DeviceId device : devices) check_device(device);
  if (!devices.empty()) return devices;

  // Who asks for the CPU leaves the driver alone.
  DeviceListing listing = wish.backend == Backend::kCpu ? DeviceListing{} : list_devices({.egl = false});
  InitialiseSettings choosing{.backend = wish.backend, .local_rank = wish.local_rank};
  // An old driver has a better reason than LibTorch's, and is found by choose_device.
  const bool driver_fits = listing.cuda_version == 0 || listing.cuda_version >= kMinimumCudaVersion;
  if (starts_with(listing, Backend::kCuda) && wish.backend != Backend::kMetal && driver_fits) {
    const auto count = static_cast<std::size_t>(cuda_devices(choosing.cuda_unusable));
    if (count > 0 && count < listing.visible.size()) {
      log::warning("LibTorch sees {} of the {} GPUs of this process; the others are left out", count,
                   listing.visible.size());
      listing.visible.resize(count);
    }
  }
  const DeviceChoice choice = choose_device(listing, choosing);
  (choice.fell_back ? log::warning<const std::string&> : log::info<const std::string&>)("{}", choice.explanation);
  if (choice.backend != Backend::kCuda) return {choice.device};
  for (std::size_t i = 0; i < listing.visible.size(); ++i) devices.push_back({DeviceKind::kCuda, static_cast<int>(i)});
  return devices;
}

}  // namespace cohort::dist
