// The host: memory, processors, disk, open files, processes of jobs before.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <sys/statvfs.h>

#include "doctor/examination.h"
#include "doctor/recorded_machine.h"
#include "monitor/host_text.h"

namespace cohort::doctor {
namespace fs = std::filesystem;
namespace {

constexpr double kLittleMemory = 0.10, kHardlyMemory = 0.03;                            // of what may be used
constexpr double kLoadFactor = 2;                                                       // load average over processors
constexpr double kLittleDisk = 2.0 * (1ull << 30), kHardlyDisk = 100.0 * (1ull << 20);  // bytes
constexpr std::uint64_t kFewFiles = 1024;

std::uint64_t number_behind(const std::string& text, const char* key) {
  const auto value = monitor::value_of(text, key);
  return value ? monitor::parse_count(*value).value_or(0) : 0;
}

void look_at_memory(const Case& c, Findings& found) {
  const monitor::HostMemory& memory = c.machine.memory;
  if (memory.usable_total == 0) return found.leave_out("/proc/meminfo is not there");
  const double left = static_cast<double>(memory.usable_available) / static_cast<double>(memory.usable_total);
  const std::string of = memory.cgroup ? format("the limit of {}", memory.cgroup->folder.string()) : "the machine";
  if (left < kLittleMemory)
    found.add(left < kHardlyMemory ? Severity::kError : Severity::kWarning, "the host's memory is nearly used up",
              format("{} left of {} ({})", format_bytes(static_cast<double>(memory.usable_available)),
                     format_bytes(static_cast<double>(memory.usable_total)), of),
              "loader.memory_budget_bytes and data.cache_bytes lower, fewer ranks per machine; a rank that is ended by "
              "SIGKILL ran out of it");
  std::vector<std::string> kills;
  if (memory.cgroup) {
    for (const char* file : {"memory.events", "memory.oom_control"})
      if (const auto count = number_behind(fact(memory.cgroup->folder / file), "oom_kill "); count > 0)
        kills.push_back(format("{}: oom_kill {}", (memory.cgroup->folder / file).string(), count));
  }
  const auto of_machine = number_behind(fact(c.root / "proc/vmstat"), "oom_kill ");
  if (of_machine > 0) kills.push_back(format("/proc/vmstat: oom_kill {} since the machine began", of_machine));
  if (!kills.empty())
    found.add(kills.size() > 1 || of_machine == 0 ? Severity::kWarning : Severity::kNote,
              "the kernel has ended programs for want of memory", join(kills, "; "),
              "loader.memory_budget_bytes and data.cache_bytes lower, fewer ranks, or a higher limit; dmesg says "
              "which program it was");
}

void look_at_processors(const Case& c, Findings& found) {
  const int usable = c.machine.cores.usable;
  const int online = std::max(1, c.machine.cores.online);
  double threads = 0;
  int ranks = 0;
  bool unset = false;
  for (const monitor::LocalRank& rank : c.machine.ranks) {
    const auto omp = monitor::process_variable(rank.status.pid, "OMP_NUM_THREADS", c.root);
    const auto count = omp ? monitor::parse_count(*omp) : std::nullopt;
    unset = unset || !count;
    threads += count ? static_cast<double>(*count) : 1;
    ++ranks;
  }
  if (ranks > 0 && threads > usable)
    found.warning("the ranks' threads are more than the cores",
                  format("{} rank(s) with {:.0f} threads (OMP_NUM_THREADS) on {} usable cores", ranks, threads, usable),
                  format("OMP_NUM_THREADS={}; cohort launch sets it so", std::max(1, usable / ranks)));
  else if (ranks > 1 && unset)
    found.note("OMP_NUM_THREADS is not set for every rank", format("{} ranks on {} cores", ranks, usable),
               "`cohort train` divides the cores itself; other programs take all of them each");
  const auto omp = monitor::parse_count(c.variable("OMP_NUM_THREADS").value_or(""));
  if (omp && static_cast<int>(std::min<std::uint64_t>(*omp, 1u << 20)) > usable)
    found.warning("OMP_NUM_THREADS is more than the cores", format("OMP_NUM_THREADS={}, {} usable cores", *omp, usable),
                  format("OMP_NUM_THREADS={} divided by the ranks of this machine", usable));
  const double load = c.machine.load.minute1;
  if (std::isfinite(load) && load > kLoadFactor * online)
    found.warning("the processors are overloaded", format("load {:.1f} on {} cores", load, online),
                  "fewer loader.workers and threads; look with top who else computes");
  if (c.machine.cores.quota && *c.machine.cores.quota < c.machine.cores.allowed)
    found.note("a control group allows less processor time than there are cores",
               format("{:.2f} cores' worth of {}", *c.machine.cores.quota, c.machine.cores.allowed),
               "programs that count cores start too many threads: set OMP_NUM_THREADS");
}

void look_at_disk(const Case& c, Findings& found) {
  const fs::path folder = c.run ? c.run->path : fs::path(c.live ? "." : "");
  struct statvfs space {};
  if (folder.empty() || ::statvfs(folder.c_str(), &space) != 0)
    return found.leave_out("a recorded machine has no disk to ask");
  const double left = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  std::error_code ignored;
  if (left < kLittleDisk)
    found.add(left < kHardlyDisk ? Severity::kError : Severity::kWarning, "the disk of the results is nearly full",
              format("{} left in {}", format_bytes(left), fs::absolute(folder, ignored).string()),
              "train.checkpoint.keep=1, or another output_dir; a run with a full disk ends with an error and keeps its "
              "last checkpoint");
  if (space.f_files > 0 && space.f_favail == 0)
    found.error("the disk takes no more files", format("no inode left in {}", folder.string()), "remove small files");
}

void look_at_open_files(const Case& c, Findings& found) {
  const std::string limits = fact(c.root / "proc/self/limits");
  if (limits.empty()) return found.leave_out("/proc/self/limits is not there");
  for (const std::string_view line : monitor::split_lines(limits)) {
    if (!line.starts_with("Max open files")) continue;
    const auto words = monitor::split_words(line);
    const auto limit = words.size() > 3 ? monitor::parse_count(words[3]) : std::nullopt;
    if (limit && *limit < kFewFiles)
      found.warning("few files may be open at a time", format("/proc/self/limits: Max open files {}", *limit),
                    "ulimit -n 65536: data sets of many files and jobs of many ranks need them");
  }
}

void look_at_processes_left(const Case& c, Findings& found) {
  const auto processes = monitor::all_processes(c.root);
  if (processes.empty()) return found.leave_out("/proc is not there");
  for (const monitor::ProcessFigures& process : processes) {
    if (process.parent != 1 || process.state == 'Z') continue;
    const auto rank = monitor::process_variable(process.pid, "RANK", c.root);
    const auto world = monitor::process_variable(process.pid, "WORLD_SIZE", c.root);
    const auto launcher = monitor::process_variable(process.pid, "TORCHELASTIC_RUN_ID", c.root);
    if (!rank || !world || !launcher || monitor::parse_count(*world).value_or(1) < 2) continue;
    found.warning(
        "a rank has outlived its launcher",
        format("process {} ({}), rank {} of {}: its parent is process 1", process.pid, process.name, *rank, *world),
        format("kill {}: it may hold GPU memory, a port, and other ranks", process.pid));
  }
}

}  // namespace

std::vector<Check> host_checks() {
  return {{"host-memory", "memory that is left, programs ended for want of it", look_at_memory},
          {"host-cores", "threads of ranks beside the cores, load, control groups", look_at_processors},
          {"host-disk", "room for checkpoints", look_at_disk},
          {"host-files", "how many files may be open", look_at_open_files},
          {"host-left-over", "ranks of jobs that ended", look_at_processes_left}};
}

}  // namespace cohort::doctor
