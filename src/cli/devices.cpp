// `cohort devices`: what there is, which library sees it, and why nothing is there.
#include "core/devices.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/devices_cpu.h"
#include "core/json_text.h"

namespace cohort::cli {
namespace {
using Json = nlohmann::ordered_json;

/// No GPU for this process: not a failure of the command (1), and told apart from it by scripts.
constexpr int kNoGpu = 3;

std::string seen_by(const GpuDevice& gpu) {
  if (gpu.kind == Backend::kMetal) return "Metal";
  return gpu.seen_by_cuda && gpu.seen_by_nvml ? "CUDA, NVML" : gpu.seen_by_cuda ? "CUDA" : "NVML";
}

std::string cuda_version(int version) {
  return version ? format("{}.{}", version / 1000, version % 1000 / 10) : "";
}

Json to_json(const GpuDevice& gpu) {
  return {
      {"name", gpu.name},
      {"backend", backend_name(gpu.kind)},
      {"memory_total", gpu.memory_total},
      {"memory_free", gpu.memory_free},
      {"compute_capability", gpu.capability_major ? format("{}.{}", gpu.capability_major, gpu.capability_minor) : ""},
      {"pci_bus_id", gpu.pci_bus_id},
      {"uuid", gpu.uuid},
      {"cuda_index", gpu.cuda_index},
      {"machine_index", gpu.nvml_index},
      {"egl_index", gpu.egl_index},
      {"egl_index_exact", gpu.egl_exact},
      {"seen_by", seen_by(gpu)}};
}

void print_json(const DeviceListing& listing, const CpuDevice& cpu) {
  Json json;
  json["visible"] = Json::array();
  for (const GpuDevice& gpu : listing.visible) json["visible"].push_back(to_json(gpu));
  json["hidden"] = Json::array();
  for (const GpuDevice& gpu : listing.hidden) json["hidden"].push_back(to_json(gpu));
  json["cuda_visible_devices"] = listing.mask ? Json(*listing.mask) : Json(nullptr);
  json["driver_version"] = listing.driver_version;
  json["driver_cuda_version"] = cuda_version(listing.cuda_version);
  json["absence"] = listing.absence;
  json["notes"] = listing.notes;
  json["cpu"] = {{"name", cpu.name}, {"cores", cpu.cores}, {"memory_total", cpu.memory_total}};
  std::puts(json_text(json, 2).c_str());
}

void print_gpu(const std::string& label, const GpuDevice& gpu) {
  const std::string memory = gpu.memory_free
                                 ? format("{} free of {}", format_bytes(static_cast<double>(gpu.memory_free)),
                                          format_bytes(static_cast<double>(gpu.memory_total)))
                             : gpu.memory_total ? format_bytes(static_cast<double>(gpu.memory_total))
                                                : std::string("memory unknown");
  std::string line = format("{:<8} {}, {}", label, gpu.name, memory);
  if (gpu.capability_major) line += format(", compute capability {}.{}", gpu.capability_major, gpu.capability_minor);
  std::puts(line.c_str());
  line = format("         PCI {}, {}", gpu.pci_bus_id.empty() ? "?" : gpu.pci_bus_id,
                gpu.uuid.empty() ? "no UUID" : gpu.uuid);
  if (gpu.nvml_index >= 0) line += format(", GPU {} of the machine", gpu.nvml_index);
  if (gpu.egl_index >= 0) line += format(", EGL device {}{}", gpu.egl_index, gpu.egl_exact ? "" : " (assumed)");
  std::puts((line + ", seen by " + seen_by(gpu)).c_str());
}

int run_devices(const std::vector<std::string>& arguments) {
  CLI::App app(
      "Lists the devices that this process may use, and why others are missing.\n"
      "Exit code: 0 with at least one GPU, 3 without (the reason is printed), 1 for an error, 2 for a wrong command "
      "line.",
      "cohort devices");
  bool json = false;
  app.add_flag("--json", json, "the list as JSON, on standard output");
  if (const auto code = parse_arguments(app, arguments)) return *code;
  const DeviceListing listing = list_devices();
  const CpuDevice cpu = host_cpu();
  if (json) {
    print_json(listing, cpu);
  } else {
    for (const GpuDevice& gpu : listing.visible)
      print_gpu(gpu.kind == Backend::kMetal ? "mps:0" : format("cuda:{}", gpu.cuda_index), gpu);
    for (const GpuDevice& gpu : listing.hidden) print_gpu("hidden", gpu);
    std::puts(format("cpu      {}, {} core(s), {}", cpu.name.empty() ? "unknown processor" : cpu.name, cpu.cores,
                     format_bytes(static_cast<double>(cpu.memory_total)))
                  .c_str());
    if (!listing.driver_version.empty() || listing.cuda_version)
      std::puts(format("driver   {}{}", listing.driver_version.empty() ? "version unknown" : listing.driver_version,
                       listing.cuda_version ? ", CUDA up to " + cuda_version(listing.cuda_version) : "")
                    .c_str());
    if (listing.mask) std::puts(format("mask     CUDA_VISIBLE_DEVICES={}", *listing.mask).c_str());
    for (const std::string& note : listing.notes) std::puts(("note     " + note).c_str());
  }
  std::fflush(stdout);
  if (!listing.visible.empty()) return 0;
  std::fputs(format("no GPU: {}\n", listing.absence).c_str(), stderr);
  return kNoGpu;
}

const Register kDevices({"devices", "list the GPUs, their memory and how to name them", run_devices, ""});

}  // namespace
}  // namespace cohort::cli
