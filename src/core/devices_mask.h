/// CUDA_VISIBLE_DEVICES: what its text means.
///
/// Source: CUDA C++ Programming Guide, "CUDA Environment Variables": entries are indices in CUDA's order or UUIDs
/// (their beginning is enough where it is unique); an invalid entry ends the list; an empty value shows no device.
/// PyTorch (torch/cuda/__init__.py, _parse_visible_devices) adds what the driver does beyond the text: numbers are read
/// as strtoul does ("1gpu" is 1), a repeated entry leaves nothing, and the first entry decides whether the list holds
/// indices, GPU- or MIG- UUIDs. A test compares both readings.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cohort {

struct NvmlReport;

struct DeviceMask {
  bool set = false;                  ///< the variable exists; an empty one shows no device
  bool uuids = false;                ///< entries are UUIDs, not indices
  std::vector<std::string> entries;  ///< the well-formed entries before the list ends; indices in plain digits
  std::string problem;               ///< why the list ended early, for people; "" when it did not
};

/// Reads the text without looking at any device.
DeviceMask parse_mask(const std::optional<std::string>& text);

/// One device that the mask shows.
struct MaskedDevice {
  std::string entry;    ///< as it stands in the mask, or the index where there is no mask
  int nvml_index = -1;  ///< into NvmlReport::devices; for a MIG slice, its GPU
};

/// The devices that the mask shows, in its order, taking CUDA's index i for NVML's device i (true where
/// CUDA_DEVICE_ORDER is PCI_BUS_ID or all GPUs are of one kind). An entry that matches no device, or several, ends the
/// list; `problem` says which.
std::vector<MaskedDevice> resolve_mask(const DeviceMask& mask, const NvmlReport& nvml, std::string* problem);

}  // namespace cohort
