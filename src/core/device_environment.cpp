#include "core/device_environment.h"

#include <algorithm>
#include <cctype>

#include "core/devices_mask.h"
#include "core/error.h"

namespace cohort {
namespace {

bool is_index(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// The entry that shows visible device `device`: CUDA shows the mask's entries in their order, one device each.
std::string entry_of(const DeviceListing& listing, int device) {
  const DeviceMask mask = parse_mask(listing.mask);
  const auto at = static_cast<std::size_t>(device);
  if (mask.set && at < mask.entries.size()) return mask.entries[at];
  if (mask.set) return listing.visible[at].uuid;  // one entry that shows several slices of a GPU
  return std::to_string(listing.visible[at].cuda_index);
}

}  // namespace

DeviceEnvironment device_environment(const DeviceListing& listing, DevicePolicy policy, int local_rank,
                                     int local_world_size) {
  COHORT_CHECK(local_rank >= 0 && local_rank < local_world_size, "local rank {} of {}", local_rank, local_world_size);
  DeviceEnvironment environment;
  const int count = static_cast<int>(listing.visible.size());
  if (count == 0 || listing.visible.front().kind != Backend::kCuda) {
    environment.explanation =
        format("local rank {}: {}", local_rank,
               count == 0 ? "the CPU; device variables stay as they are" : "Metal has no device variables");
    return environment;
  }
  COHORT_THROW_UNLESS(policy == DevicePolicy::kShared || local_rank < count,
                      "local rank {} has no GPU: with a GPU of its own for every rank at most {} can start here{}",
                      local_rank, count, listing.mask ? format(" (CUDA_VISIBLE_DEVICES={})", *listing.mask) : "");
  const int device = local_rank % count;
  if (local_rank >= count)
    environment.warnings.push_back(format(
        "local rank {} shares {} with local rank {}: {} rank(s) for {} GPU(s). NCCL refuses two ranks on one GPU",
        local_rank, listing.visible[static_cast<std::size_t>(device)].name, device, local_world_size, count));
  const GpuDevice& gpu = listing.visible[static_cast<std::size_t>(device)];
  const std::string entry = entry_of(listing, device);
  const auto set = [&](const char* name, const std::string& value) { environment.variables.emplace_back(name, value); };
  environment.device = device;
  if (policy == DevicePolicy::kOwn) set("CUDA_VISIBLE_DEVICES", entry);
  const int machine_index = gpu.nvml_index >= 0 ? gpu.nvml_index : gpu.egl_index;
  if (machine_index >= 0) {
    set("TI_VISIBLE_DEVICE", std::to_string(machine_index));
    set("QD_VISIBLE_DEVICE", std::to_string(machine_index));
  }
  if (gpu.egl_index >= 0) {
    set("EGL_DEVICE_ID", std::to_string(gpu.egl_index));
    set("MUJOCO_EGL_DEVICE_ID", is_index(entry) ? entry : std::to_string(gpu.egl_index));
  }
  if (policy == DevicePolicy::kShared && is_index(entry)) {
    // MuJoCo 4 reads MUJOCO_EGL_DEVICE_ID as a position within the mask first.
    const DeviceMask mask = parse_mask(listing.mask);
    const std::size_t position = std::stoul(entry);
    if (mask.set && position < mask.entries.size() && mask.entries[position] != entry)
      environment.warnings.push_back(
          format("CUDA_VISIBLE_DEVICES={} renumbers GPU {}: MuJoCo 4 takes MUJOCO_EGL_DEVICE_ID={} for entry {} of the "
                 "mask, older "
                 "ones for the GPU; with --virtual-local-rank they agree",
                 *listing.mask, entry, entry, position));
  }
  const std::string cuda = policy == DevicePolicy::kOwn
                               ? format("CUDA_VISIBLE_DEVICES={} (its cuda:0)", entry)
                               : format("its cuda:{}, CUDA_VISIBLE_DEVICES {}", device,
                                        listing.mask ? "stays " + *listing.mask : "stays unset");
  environment.explanation =
      format("local rank {}: GPU {} of this machine ({}{}{}), {}", local_rank,
             machine_index >= 0 ? std::to_string(machine_index) : "?", gpu.name,
             gpu.pci_bus_id.empty() ? "" : ", PCI " + gpu.pci_bus_id, gpu.uuid.empty() ? "" : ", " + gpu.uuid, cuda);
  for (const auto& [name, value] : environment.variables)
    if (name != "CUDA_VISIBLE_DEVICES") environment.explanation += format(", {}={}", name, value);
  if (!gpu.egl_exact && gpu.egl_index >= 0)
    environment.explanation += " (EGL does not tell which GPU it lists where: PCI order is assumed)";
  return environment;
}

std::optional<std::string> narrow_mask(const DeviceListing& listing, const std::string& gpu_ids) {
  if (gpu_ids == "all") return std::nullopt;
  const DeviceMask wanted = parse_mask(gpu_ids);
  COHORT_THROW_UNLESS(
      wanted.problem.empty() && !wanted.entries.empty(),
      "--gpu_ids='{}' is no list of GPUs ({}): give indices (0,2), UUIDs as `nvidia-smi -L` prints them, or all",
      gpu_ids, wanted.problem.empty() ? "it names none" : wanted.problem);
  COHORT_THROW_UNLESS(!listing.visible.empty(), "--gpu_ids={}: this process sees no GPU: {}", gpu_ids, listing.absence);
  std::string shown;
  for (std::size_t i = 0; i < listing.visible.size(); ++i) {
    const int at = static_cast<int>(i);
    shown += format("{}{}", i ? ", " : "", entry_of(listing, at));
  }
  std::vector<std::string> narrowed;
  for (const std::string& id : wanted.entries) {
    std::vector<std::string> entries;  // of the devices that the id means: a beginning of a UUID may fit several
    std::string names;
    for (std::size_t i = 0; i < listing.visible.size(); ++i) {
      const GpuDevice& gpu = listing.visible[i];
      const std::string own = entry_of(listing, static_cast<int>(i));
      const bool same =
          is_index(id) ? (is_index(own) ? own == id : std::to_string(gpu.nvml_index) == id) : gpu.uuid.starts_with(id);
      if (!same || std::find(entries.begin(), entries.end(), own) != entries.end()) continue;
      entries.push_back(own);
      names += (names.empty() ? "" : ", ") + (gpu.uuid.empty() ? own : gpu.uuid);
    }
    COHORT_THROW_UNLESS(!entries.empty(), "--gpu_ids={}: GPU '{}' is not among those this process may use ({}{})",
                        gpu_ids, id, shown, listing.mask ? ", by CUDA_VISIBLE_DEVICES=" + *listing.mask : "");
    COHORT_THROW_UNLESS(entries.size() == 1, "--gpu_ids={}: '{}' may be any of {}: give as much as names one of them",
                        gpu_ids, id, names);
    const std::string& entry = entries.front();
    COHORT_THROW_UNLESS(std::find(narrowed.begin(), narrowed.end(), entry) == narrowed.end(),
                        "--gpu_ids={} names GPU '{}' twice", gpu_ids, id);
    narrowed.push_back(entry);
  }
  std::string text;
  for (const std::string& entry : narrowed) text += (text.empty() ? "" : ",") + entry;
  return text;
}

}  // namespace cohort
