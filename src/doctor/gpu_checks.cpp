// GPUs: the driver and its versions, what is visible, memory, clocks, links between them.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "doctor/examination.h"
#include "doctor/recorded_machine.h"

namespace cohort::doctor {
namespace fs = std::filesystem;
namespace {

using monitor::GpuFigures;

constexpr double kFullShare = 0.95;     // of a GPU's memory: little more fits
constexpr double kForeignShare = 0.10;  // of a GPU's memory in other programs' hands
constexpr double kUnbalanced = 20;      // percentage points between GPUs
constexpr int kBusy = 20;               // %: takes part in some work

std::size_t gpu_count(const Case& c) {
  return std::max(c.machine.gpus.size(), nvidia_on_pci(c.root).size());
}

std::string gpu_of(const GpuFigures& gpu) {
  return format("GPU {} ({})", gpu.index, gpu.name.empty() ? "does not answer" : gpu.name);
}

/// Version of a library of the driver, by its file's name.
std::string library_version(const fs::path& root, std::string& where) {
  for (const char* folder : {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"})
    for (const std::string& name : names_in(root / folder))
      for (const char* library : {"libcuda.so.", "libnvidia-ml.so."})
        if (name.starts_with(library) && std::count(name.begin(), name.end(), '.') >= 3) {
          where = format("/{}/{}", folder, name);
          return name.substr(std::string(library).size());
        }
  return "";
}

void look_at_driver(const Case& c, Findings& found) {
  const auto cards = nvidia_on_pci(c.root);
  const std::string module = kernel_module_version(c.root);
  if (cards.empty() && module.empty() && c.machine.gpus.empty())
    return found.leave_out("there is no NVIDIA GPU on the PCI bus");
  if (!cards.empty() && module.empty() && c.machine.gpus.empty()) {
    const bool nouveau = fact(c.root / "proc/modules").find("nouveau") != std::string::npos;
    found.error(format("{} NVIDIA GPU(s) and no driver", cards.size()),
                format("/sys/bus/pci/devices/{} is there, /proc/driver/nvidia/version is not{}", cards.front(),
                       nouveau ? "; the module nouveau is loaded in its place" : ""),
                nouveau ? "install NVIDIA's driver, keep nouveau from loading (blacklist nouveau in /etc/modprobe.d), "
                          "start the machine again"
                        : "install NVIDIA's driver and load it: modprobe nvidia");
    return;
  }
  std::string where;
  const std::string library = library_version(c.root, where);
  if (!module.empty() && !library.empty() && module != library)
    found.error("kernel module and libraries of the driver are of different versions",
                format("/proc/driver/nvidia/version says {}, and there is {}", module, where),
                "start the machine again after an update of the driver; in a container take the libraries of the host: "
                "--gpus all with the NVIDIA Container Toolkit, none in the image");
  const auto known = names_in(c.root / "proc/driver/nvidia/gpus");
  std::error_code error;
  if (!known.empty() && !fs::exists(c.root / "dev/nvidiactl", error) && !fs::exists(c.root / "dev/nvidia0", error))
    found.error("the GPUs are not in this container",
                format("/proc/driver/nvidia/gpus has {}, /dev/nvidiactl and /dev/nvidia0 are missing", known.size()),
                container_sign(c.root).empty() ? "nvidia-modprobe -u -c=0" : "start the container with --gpus all");
  if (c.live && !cards.empty() && c.machine.gpus.empty() && found.all().empty())
    found.error(
        "NVML does not show the GPUs", c.machine.no_gpu,
        "nvidia-smi says more; in a container: --gpus all, and NVIDIA_DRIVER_CAPABILITIES with utility,compute");
}

void look_at_cuda_version(const Case& c, Findings& found) {
  const std::string driver = c.machine.driver.empty() ? kernel_module_version(c.root) : c.machine.driver;
  if (driver.empty()) return found.leave_out("there is no driver");
  if (c.minimum_cuda_version == 0) return found.leave_out("this build has no LibTorch with CUDA");
  // CUDA Toolkit release notes, "CUDA Toolkit and Minimum Required Driver Version", Linux.
  const int major = c.minimum_cuda_version / 1000;
  const std::string least = major >= 13 ? "580.65.06" : major == 12 ? "525.60.13" : "450.80.02";
  if (!at_least(driver, least))
    found.error("the driver is too old for this build's CUDA",
                format("driver {}, CUDA {} needs {} or newer", driver, major, least),
                "update the driver, or use a build for an older CUDA");
}

void look_at_visible_devices(const Case& c, Findings& found) {
  const auto mask = c.variable("CUDA_VISIBLE_DEVICES");
  const std::size_t cards = gpu_count(c);
  if (cards == 0) return found.leave_out("there is no GPU");
  if (c.devices && c.devices->visible.empty()) {
    found.error("no GPU is visible to a job", c.devices->absence,
                mask ? "unset CUDA_VISIBLE_DEVICES, or name GPUs that are there: `cohort devices` lists them"
                     : "`cohort devices` says what each library sees");
    return;
  }
  if (!mask) return;
  std::istringstream entries(*mask);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const bool number = !entry.empty() && entry.find_first_not_of("0123456789") == std::string::npos;
    if ((number && std::stoul(entry.substr(0, 9)) >= cards) || entry == "-1")
      found.error("CUDA_VISIBLE_DEVICES names a GPU that is not there",
                  format("CUDA_VISIBLE_DEVICES={}, {} GPU(s) on this machine; CUDA ignores '{}' and what follows it",
                         *mask, cards, entry),
                  format("name GPUs from 0 to {}", cards - 1));
  }
  if (c.devices && !c.devices->hidden.empty() && found.all().empty())
    found.note(format("{} of {} GPU(s) are hidden from a job", c.devices->hidden.size(), cards),
               format("CUDA_VISIBLE_DEVICES={}", *mask), "nothing, where that is meant; they are renumbered from 0");
}

void look_at_gpu_memory(const Case& c, Findings& found) {
  if (c.machine.gpus.empty()) return found.leave_out("no GPU reports its memory");
  for (const GpuFigures& gpu : c.machine.gpus) {
    if (!gpu.memory_used || !gpu.memory_total || *gpu.memory_total == 0) continue;
    const auto total = static_cast<double>(*gpu.memory_total), used = static_cast<double>(*gpu.memory_used);
    if (used > kFullShare * total)
      found.warning(format("{} is full", gpu_of(gpu)),
                    format("{} of {} in use", format_bytes(used), format_bytes(total)),
                    "train.batch_size=half train.gradient_accumulation_steps=2; train.precision=bf16; "
                    "train.gradient_checkpointing=true; `cohort estimate` says what fits");
    if (!gpu.processes) continue;
    for (const monitor::GpuProcess& process : *gpu.processes) {
      const bool own = std::any_of(c.machine.ranks.begin(), c.machine.ranks.end(),
                                   [&](const auto& rank) { return rank.status.pid == process.pid; });
      if (own || !process.memory || static_cast<double>(*process.memory) < kForeignShare * total) continue;
      found.warning(format("another program takes memory of {}", gpu_of(gpu)),
                    format("process {} has {}: {}", process.pid, format_bytes(static_cast<double>(*process.memory)),
                           monitor::process_command(process.pid, c.root).substr(0, 120)),
                    "end it, or choose other GPUs with CUDA_VISIBLE_DEVICES");
    }
  }
}

void look_at_gpu_clocks(const Case& c, Findings& found) {
  if (c.machine.gpus.empty()) return found.leave_out("no GPU reports its clocks");
  for (const GpuFigures& gpu : c.machine.gpus) {
    if (!gpu.slowed_by) continue;
    for (const std::string& reason : *gpu.slowed_by) {
      const std::string evidence =
          format("held back by {}; {} C, {} MHz", reason, gpu.temperature.value_or(0), gpu.sm_clock.value_or(0));
      if (reason.find("thermal") != std::string::npos || reason.find("hardware") != std::string::npos)
        found.warning(format("{} runs below its clock", gpu_of(gpu)), evidence,
                      "look at fans, air flow and power cables; the slowest GPU sets the pace of all");
      else if (reason == "power cap")
        found.note(format("{} is at its power limit", gpu_of(gpu)), evidence, "usual under full load");
    }
  }
}

void look_at_gpu_health(const Case& c, Findings& found) {
  if (c.machine.gpus.empty()) return found.leave_out("no GPU answers");
  for (const GpuFigures& gpu : c.machine.gpus) {
    if (gpu.name.empty() && !gpu.memory_total)
      found.error(format("GPU {} does not answer", gpu.index), "NVML lists it and gives no figure of it",
                  "dmesg | grep -i xid; start the machine again; look at its power supply and slot");
    if (gpu.uncorrected_errors.value_or(0) > 0)
      found.error(format("{} has errors in its memory", gpu_of(gpu)),
                  format("{} that could not be corrected, since the driver was loaded", *gpu.uncorrected_errors),
                  "take it out of jobs, reset it, have it replaced where they come back");
    if (gpu.pcie_width && gpu.pcie_width_max && *gpu.pcie_width < *gpu.pcie_width_max)
      found.warning(format("{} has a narrow link", gpu_of(gpu)),
                    format("{} of {} PCIe lanes", *gpu.pcie_width, *gpu.pcie_width_max),
                    "look at slot, riser and the board's manual; gradients travel at that share of the speed");
  }
}

void look_at_gpu_balance(const Case& c, Findings& found) {
  std::vector<const GpuFigures*> busy;
  for (const GpuFigures& gpu : c.machine.gpus)
    if (gpu.utilization.value_or(0) >= kBusy) busy.push_back(&gpu);
  if (busy.size() < 2) return found.leave_out("fewer than two GPUs are at work");
  const auto by_load = [](const auto* a, const auto* b) { return *a->utilization < *b->utilization; };
  const auto [low, high] = std::minmax_element(busy.begin(), busy.end(), by_load);
  if (*(*high)->utilization - *(*low)->utilization > kUnbalanced)
    found.warning(
        "the GPUs are not equally busy",
        format("{} {} %, {} {} %", gpu_of(**low), *(*low)->utilization, gpu_of(**high), *(*high)->utilization),
        "larger batches; ranks with equal shares; with DataParallel the first device does more: "
        "cohort launch --nproc_per_node=gpu");
  const auto share = [](const GpuFigures* gpu) {
    return gpu->memory_total.value_or(0) == 0
               ? 0.0
               : 100 * static_cast<double>(gpu->memory_used.value_or(0)) / static_cast<double>(*gpu->memory_total);
  };
  const auto by_memory = [&](const auto* a, const auto* b) { return share(a) < share(b); };
  const auto [less, more] = std::minmax_element(busy.begin(), busy.end(), by_memory);
  if (share(*more) - share(*less) > kUnbalanced)
    found.warning("the GPUs do not use alike much memory",
                  format("{} {:.0f} %, {} {:.0f} %", gpu_of(**less), share(*less), gpu_of(**more), share(*more)),
                  "one process per GPU (cohort launch) in place of DataParallel; look who else uses the fuller one");
  for (const GpuFigures* gpu : busy)
    if (gpu->name != busy.front()->name) {
      found.note("GPUs of different kinds work together", format("{}, {}", gpu_of(*busy.front()), gpu_of(*gpu)),
                 "the slowest sets the pace: choose equal ones with CUDA_VISIBLE_DEVICES");
      break;
    }
}

void look_at_peer_access(const Case& c, Findings& found) {
  const std::size_t cards = gpu_count(c);
  if (cards < 2) return found.leave_out("fewer than two GPUs");
  const bool off = c.variable("NCCL_P2P_DISABLE").value_or("") == "1";
  if (off) {
    found.note("GPUs exchange through the host's memory", "NCCL_P2P_DISABLE=1",
               "unset it where P2P works: it is faster");
    return;
  }
  bool all_known = c.machine.gpus.size() > 1 && static_cast<bool>(c.peer_access);
  for (std::size_t a = 0; all_known && a < c.machine.gpus.size(); ++a)
    for (std::size_t b = 0; b < c.machine.gpus.size(); ++b) {
      if (a == b) continue;
      const auto reaches = c.peer_access(static_cast<int>(a), static_cast<int>(b));
      all_known = all_known && reaches.has_value();
      if (reaches.value_or(true)) continue;
      found.warning("GPUs cannot read each other's memory", format("NVML: GPU {} from GPU {}: no P2P read", b, a),
                    "NCCL_P2P_DISABLE=1 where NCCL hangs or fails at its start; nvidia-smi topo -p2p r shows all");
      return;
    }
  if (all_known) return;
  const std::string processor = fact(c.root / "proc/cpuinfo");
  const bool virtual_machine = processor.find(" hypervisor") != std::string::npos;
  const std::size_t groups = names_in(c.root / "sys/kernel/iommu_groups").size();
  if (virtual_machine || groups > 0)
    found.warning(
        "P2P between the GPUs may fail or be slow",
        virtual_machine ? "/proc/cpuinfo: flag hypervisor, and there are several GPUs"
                        : format("/sys/kernel/iommu_groups has {} groups: the IOMMU is on", groups),
        virtual_machine
            ? "if NCCL hangs at its first collective: NCCL_P2P_DISABLE=1"
            : "switch off ACS and the IOMMU for bare metal (NCCL's guide, Troubleshooting), or NCCL_P2P_DISABLE=1");
}

}  // namespace

std::vector<Check> gpu_checks() {
  return {{"gpu-driver", "GPUs on the PCI bus, kernel module, libraries, device files", look_at_driver},
          {"gpu-cuda-version", "whether the driver runs this build's CUDA", look_at_cuda_version},
          {"gpu-visible", "CUDA_VISIBLE_DEVICES", look_at_visible_devices},
          {"gpu-memory", "memory in use, and by whom", look_at_gpu_memory},
          {"gpu-clocks", "what holds clocks back", look_at_gpu_clocks},
          {"gpu-health", "GPUs that do not answer, memory errors, PCIe lanes", look_at_gpu_health},
          {"gpu-balance", "utilisation and memory of the GPUs at work", look_at_gpu_balance},
          {"gpu-p2p", "whether GPUs reach each other's memory", look_at_peer_access}};
}

}  // namespace cohort::doctor
