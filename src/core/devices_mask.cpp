#include "core/devices_mask.h"

#include <algorithm>
#include <cctype>

#include "core/devices_probe.h"
#include "core/format.h"

namespace cohort {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// The number at the beginning of the text, as strtoul reads it; "" where there is none or it is negative.
std::string leading_index(const std::string& text) {
  std::size_t begin = !text.empty() && text[0] == '+' ? 1 : 0;
  std::size_t end = begin;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
  if (end == begin) return "";
  while (begin + 1 < end && text[begin] == '0') ++begin;
  return text.substr(begin, end - begin);
}

}  // namespace

DeviceMask parse_mask(const std::optional<std::string>& text) {
  DeviceMask mask;
  if (!text) return mask;
  mask.set = true;
  const std::string prefix = text->starts_with("GPU-") ? "GPU-" : text->starts_with("MIG-") ? "MIG-" : "";
  mask.uuids = !prefix.empty();
  if (trimmed(*text).empty()) {
    mask.problem = "it is empty";
    return mask;
  }
  for (const std::string& part : split(*text)) {
    const std::string entry = mask.uuids ? part : leading_index(trimmed(part));
    if (mask.uuids ? !entry.starts_with(prefix) : entry.empty()) {
      mask.problem = format("'{}' is no {}, which ends the list there", part,
                            mask.uuids ? prefix + " UUID as the first entry is" : "device index");
      return mask;
    }
    if (std::find(mask.entries.begin(), mask.entries.end(), entry) != mask.entries.end()) {
      mask.entries.clear();
      mask.problem = format("'{}' stands there twice, which leaves no device", entry);
      return mask;
    }
    mask.entries.push_back(entry);
  }
  return mask;
}

std::vector<MaskedDevice> resolve_mask(const DeviceMask& mask, const NvmlReport& nvml, std::string* problem) {
  std::vector<MaskedDevice> devices;
  if (problem) *problem = mask.problem;
  if (!mask.set) {
    for (std::size_t i = 0; i < nvml.devices.size(); ++i) devices.push_back({std::to_string(i), static_cast<int>(i)});
    return devices;
  }
  for (const std::string& entry : mask.entries) {
    int nvml_index = -1;
    int matches = 0;
    std::string whole;  // the full name of what matched, to find two ways of naming one device
    if (!mask.uuids) {
      if (entry.size() < 6 && std::stoul(entry) < nvml.devices.size()) {
        nvml_index = std::stoi(entry);
        matches = 1;
        whole = entry;
      }
    } else if (entry.starts_with("MIG-")) {
      for (const MigInstance& slice : nvml.mig)
        if (slice.uuid.starts_with(entry)) {
          nvml_index = slice.parent;
          whole = slice.uuid;
          ++matches;
        }
    } else {
      for (std::size_t i = 0; i < nvml.devices.size(); ++i)
        if (nvml.devices[i].uuid.starts_with(entry)) {
          nvml_index = static_cast<int>(i);
          whole = nvml.devices[i].uuid;
          ++matches;
        }
    }
    if (matches != 1) {
      if (problem)
        *problem = matches == 0
                       ? format("no device of this machine is '{}', which ends the list there", entry)
                       : format("'{}' is the beginning of {} devices, which ends the list there", entry, matches);
      return devices;
    }
    const bool repeated = !entry.starts_with("MIG-") && std::any_of(devices.begin(), devices.end(), [&](const auto& d) {
      return d.nvml_index == nvml_index;
    });
    if (repeated) {
      if (problem) *problem = format("'{}' names a device a second time, which leaves no device", entry);
      return {};
    }
    devices.push_back({entry, nvml_index});
  }
  return devices;
}

}  // namespace cohort
