// Joins what the libraries say into one list.
#include <algorithm>
#include <set>

#include "core/devices.h"
#include "core/devices_mask.h"
#include "core/devices_probe.h"
#include "core/format.h"

namespace cohort {
namespace {

/// The hexadecimal part: CUDA gives a MIG slice's UUID without saying that it is one.
std::string bare_uuid(const std::string& uuid) {
  return uuid.size() > 4 ? uuid.substr(4) : uuid;
}

/// True when CUDA's order on this machine can differ from NVML's in a way that only the driver knows.
bool order_is_unknown(const DeviceMask& mask, const NvmlReport& nvml, const std::optional<std::string>& order) {
  if (!nvml.mig.empty()) return !(mask.set && mask.uuids);  // which slice an index means has changed between drivers
  if (mask.set && mask.uuids) return false;
  if (order && *order == "PCI_BUS_ID") return false;
  return std::any_of(nvml.devices.begin(), nvml.devices.end(),
                     [&](const GpuDevice& d) { return d.name != nvml.devices.front().name; });
}

/// Adds to what CUDA says of a device what NVML says of the same one.
void complete(GpuDevice& device, const NvmlReport& nvml) {
  for (const MigInstance& slice : nvml.mig)
    if (bare_uuid(slice.uuid) == bare_uuid(device.uuid)) {
      device.uuid = slice.uuid;
      device.seen_by_nvml = true;
      device.nvml_index = nvml.devices[static_cast<std::size_t>(slice.parent)].nvml_index;
      return;  // the memory figures of the whole GPU are not the slice's
    }
  for (const GpuDevice& other : nvml.devices)
    if (other.uuid == device.uuid || (device.uuid.empty() && other.pci_bus_id == device.pci_bus_id)) {
      device.seen_by_nvml = true;
      device.nvml_index = other.nvml_index;
      device.memory_free = other.memory_free;
      if (device.uuid.empty()) device.uuid = other.uuid;
      if (device.pci_bus_id.empty()) device.pci_bus_id = other.pci_bus_id;
      return;
    }
}

/// The devices that the mask shows by NVML alone.
std::vector<GpuDevice> visible_by_nvml(const DeviceMask& mask, const NvmlReport& nvml, std::string* problem) {
  std::vector<GpuDevice> visible;
  for (const MaskedDevice& masked : resolve_mask(mask, nvml, problem)) {
    GpuDevice device = nvml.devices[static_cast<std::size_t>(masked.nvml_index)];
    device.cuda_index = static_cast<int>(visible.size());
    if (masked.entry.starts_with("MIG-")) {
      device.uuid = masked.entry;
      device.memory_total = device.memory_free = 0;
    }
    visible.push_back(std::move(device));
  }
  return visible;
}

void find_egl_indices(std::vector<GpuDevice>& devices, const EglReport& egl, bool masked) {
  for (GpuDevice& device : devices) {
    device.egl_index = device.nvml_index >= 0 ? device.nvml_index : device.cuda_index;
    const auto found = [&](auto&& matches) {
      for (std::size_t i = 0; i < egl.devices.size(); ++i)
        if (matches(egl.devices[i])) {
          device.egl_index = static_cast<int>(i);
          device.egl_exact = true;
          return true;
        }
      return false;
    };
    // The UUID names the GPU itself; the DRM node's bus does where nvidia-drm is loaded. The CUDA number means the same
    // as ours only while no mask renumbers the devices.
    if (found([&](const EglDevice& e) { return !e.uuid.empty() && e.uuid == device.uuid; })) continue;
    if (found([&](const EglDevice& e) { return !e.pci_bus_id.empty() && e.pci_bus_id == device.pci_bus_id; })) continue;
    if (!masked) found([&](const EglDevice& e) { return e.cuda_index >= 0 && e.cuda_index == device.cuda_index; });
  }
}

std::string explain_absence(DeviceProbe& probe, const DeviceMask& mask, const std::string& mask_problem,
                            const std::optional<std::string>& text, const CudaReport& cuda, const NvmlReport& nvml) {
  const bool masked_out = mask.set && (mask.entries.empty() || !mask_problem.empty());
  if (masked_out && (cuda.library || nvml.library))
    return format(
        "CUDA_VISIBLE_DEVICES='{}' shows no device: {}; unset it, or name devices as `nvidia-smi -L` lists them", *text,
        mask_problem.empty() ? "it names none" : mask_problem);
  if (!cuda.library && !nvml.library)
    return probe.nvidia_on_pci_bus()
               ? "an NVIDIA GPU is on the PCI bus, but neither libcuda.so.1 nor libnvidia-ml.so.1 can be opened: "
                 "install the "
                 "driver, or in a container give it the GPU (docker run --gpus all, with the NVIDIA Container Toolkit)"
               : "no NVIDIA driver (neither libcuda.so.1 nor libnvidia-ml.so.1 can be opened) and no NVIDIA GPU on the "
                 "PCI bus";
  if (!cuda.library)
    return format(
        "NVML sees {} GPU(s), but libcuda.so.1 cannot be opened: in a container, NVIDIA_DRIVER_CAPABILITIES must "
        "contain 'compute'",
        nvml.devices.size());
  if (!cuda.failure.empty()) return cuda.failure;
  if (!nvml.failure.empty() && nvml.library) return nvml.failure;
  return "the driver lists no device";
}

}  // namespace

DeviceListing list_devices(DeviceProbe& probe, const ListSettings& settings) {
  DeviceListing listing;
  listing.mask = probe.environment("CUDA_VISIBLE_DEVICES");
  const DeviceMask mask = parse_mask(listing.mask);
  const NvmlReport nvml = probe.nvml();
  listing.driver_version = nvml.driver_version;

  const bool ask_cuda = settings.initialise_cuda || !nvml.failure.empty() || nvml.devices.empty() ||
                        order_is_unknown(mask, nvml, probe.environment("CUDA_DEVICE_ORDER"));
  CudaReport cuda;
  std::string mask_problem = mask.problem;
  if (ask_cuda) {
    cuda = probe.cuda();
    listing.cuda_version = cuda.version;
    listing.visible = cuda.devices;
    for (GpuDevice& device : listing.visible) complete(device, nvml);
    if (nvml.failure.empty()) {
      std::string by_nvml;
      const auto expected = resolve_mask(mask, nvml, &by_nvml);
      if (!by_nvml.empty()) mask_problem = by_nvml;
      if (cuda.library && cuda.failure.empty() && nvml.mig.empty() && expected.size() != cuda.devices.size())
        listing.notes.push_back(
            format("CUDA shows {} device(s) where the mask and NVML give {}; CUDA's answer is taken",
                   cuda.devices.size(), expected.size()));
    } else if (nvml.library) {
      listing.notes.push_back(nvml.failure);
    }
  } else {
    listing.visible = visible_by_nvml(mask, nvml, &mask_problem);
  }
  if (listing.visible.empty()) {
    const MetalReport metal = probe.metal();
    listing.visible = metal.devices;
    if (metal.devices.empty()) listing.absence = explain_absence(probe, mask, mask_problem, listing.mask, cuda, nvml);
  } else if (mask.set && !mask_problem.empty()) {
    listing.notes.push_back(format("CUDA_VISIBLE_DEVICES='{}': {}", *listing.mask, mask_problem));
  }
  std::set<int> shown;
  for (const GpuDevice& device : listing.visible) shown.insert(device.nvml_index);
  for (const GpuDevice& device : nvml.devices)
    if (!shown.contains(device.nvml_index)) listing.hidden.push_back(device);
  if (settings.egl && !listing.visible.empty() && listing.visible.front().kind == Backend::kCuda)
    find_egl_indices(listing.visible, probe.egl(), mask.set);
  return listing;
}

DeviceListing list_devices(const ListSettings& settings) {
  const auto probe = system_probe();
  return list_devices(*probe, settings);
}

}  // namespace cohort
