#include "monitor/snapshot.h"

#include <algorithm>
#include <chrono>

#include <unistd.h>

namespace cohort::monitor {
namespace fs = std::filesystem;
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char host[256] = {};
  return ::gethostname(host, sizeof host - 1) == 0 ? host : "";
}

}  // namespace

void identify_process(rank::Status& status) {
  status.host = host_name();
  status.pid = ::getpid();
  if (const auto process = read_process(status.pid)) status.started = process->started;
}

std::vector<LocalRank> local_ranks(const fs::path& root) {
  std::vector<LocalRank> ranks;
  for (const ProcessFigures& process : all_processes(root)) {
    if (process.state == 'Z') continue;
    for (const OpenFile& file : open_files(process.pid, root)) {
      const fs::path target(file.target);
      if (target.filename() != rank::kRanksFolder) continue;
      for (rank::Status& status : rank::read_statuses(file.descriptor)) {
        if (status.pid != process.pid || status.started != process.started) continue;
        ranks.push_back({.status = std::move(status), .run = target.parent_path(), .rss = process.rss});
        break;
      }
    }
  }
  std::sort(ranks.begin(), ranks.end(), [](const LocalRank& a, const LocalRank& b) {
    return a.run != b.run ? a.run < b.run : a.status.rank < b.status.rank;
  });
  return ranks;
}

Watcher::Watcher(fs::path root, const std::string& nvml) : root_(std::move(root)), gpus_(nvml) {}

Snapshot Watcher::read() {
  Snapshot now;
  now.time = seconds_since_1970();
  now.host = host_name();
  now.cores = host_cores(root_);
  now.load = load_average(root_);
  now.memory = host_memory(root_);
  now.driver = gpus_.driver_version();
  now.no_gpu = gpus_.unavailable_because();
  now.gpus = gpus_.read();
  now.ranks = local_ranks(root_);
  const ProcessorTime processors = processor_time(root_);
  if (processors_.all > 0 && processors.all > processors_.all && processors.busy >= processors_.busy)
    now.busy_cores = static_cast<double>(processors.busy - processors_.busy) /
                     static_cast<double>(processors.all - processors_.all) * now.cores.online;
  processors_ = processors;
  std::map<std::int64_t, Used> used;
  for (LocalRank& rank : now.ranks) {
    const auto process = read_process(rank.status.pid, root_);
    if (!process) continue;
    const Used present{process->cpu_s, steady_now()};
    const auto before = used_.find(rank.status.pid);
    if (before != used_.end() && present.time > before->second.time)
      rank.cores = (present.cpu_s - before->second.cpu_s) / (present.time - before->second.time);
    used.emplace(rank.status.pid, present);
  }
  used_ = std::move(used);
  return now;
}

}  // namespace cohort::monitor
