#include "cli/simulate_processes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/simulate_figures.h"
#include "cli/subcommand.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "launch/agent.h"
#include "sim/host_memory.h"

namespace cohort::cli {
namespace {

/// "run.npz" of process 2: "run.2.npz".
std::string file_of(const std::string& file, std::size_t process) {
  const std::filesystem::path path(file);
  return (path.parent_path() / format("{}.{}{}", path.stem().string(), process, path.extension().string())).string();
}

}  // namespace

std::vector<int> split_devices(const std::string& text) {
  std::vector<int> devices;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    int device = -1;
    const auto [stop, problem] = std::from_chars(text.data() + at, text.data() + end, device);
    if (problem != std::errc() || stop != text.data() + end || device < 0 ||
        std::find(devices.begin(), devices.end(), device) != devices.end()) {
      throw UsageError(format("--devices {}: numbers with commas between them, each once, e.g. 0,1", text));
    }
    devices.push_back(device);
    at = end + 1;
  }
  return devices;
}

int simulate_on(const std::vector<int>& devices, const SimulateSettings& s, const std::vector<std::string>& arguments) {
  const auto count = static_cast<int>(devices.size());
  if (s.n_envs < count) {
    throw UsageError(
        format("--devices {}: {} environments cannot be shared among {} processes", s.devices, s.n_envs, count));
  }
  const TemporaryFolder folder("cohort-simulate");
  // Every process is told the same and finds its share by its rank. --summary makes it such a process, whatever
  // --devices says; it stands first, because behind a `--` it would be a file's name.
  launch::LaunchSettings job;
  job.ranks = count;
  job.command = {own_path(), "simulate", "--summary=" + folder.path().string()};
  job.command.insert(job.command.end(), arguments.begin(), arguments.end());
  job.fill_local_rank = false;  // the arguments mean here what they mean to one process
  job.environment = {
      {sim::kHostMemoryVariable, format("{:.0f}", sim::available_host_memory() / static_cast<double>(count))}};
  // On GPUs the ranks see the listed devices and take one each; otherwise only the number of devices counts.
  const bool on_gpus = s.backend != "cpu" && s.engine == "batched" && gpu_usable();
  job.without_gpu = !on_gpus;
  if (on_gpus) {
    std::string ids;
    for (const int device : devices) ids += format("{}{}", ids.empty() ? "" : ",", device);
    job.gpu_ids = ids;
  }
  job.threads_per_rank = s.threads > 0 ? s.threads : threads_for(s.n_envs / count, count);
  job.quiet = true;
  const auto begin = std::chrono::steady_clock::now();
  const int code = launch::run_job(job);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  SimulateFigures total;
  std::int64_t least = s.steps;
  for (int rank = 0; rank < count; ++rank) {
    const std::filesystem::path file = folder.path() / format("{}", rank);
    std::error_code unknown;
    // A process that failed or was killed; the agent has said how.
    if (code != 0 && !std::filesystem::exists(file, unknown)) return code;
    const SimulateFigures one = figures_from(read_file(file), rank);
    add(total, one);
    least = std::min(least, one.done);
  }
  log::info(
      "{} processes together: {:.0f} steps/s in physics ({} environments x {} steps, {:.3f} s in the slowest process, "
      "{:.2f} s from start to end), {:.2f} contacts and {:.2f} solver iterations per step, {:.0f} environments stopped",
      count, total.steps / std::max(1e-9, total.seconds), s.n_envs,
      least == total.done ? format("{}", least) : format("{} to {}", least, total.done), total.seconds, wall,
      total.contacts / std::max(1.0, total.steps), total.iterations / std::max(1.0, total.steps), total.stopped);
  if (code == 0) need_one_left(total, s.n_envs, s.control);
  return code;
}

void take_share(SimulateSettings& s, const rank::Environment& place) {
  const int whole = s.n_envs, size = place.world_size;
  if (whole < size) {
    throw UsageError(format("--n-envs {}: so few environments cannot be shared among {} processes", whole, size));
  }
  const auto first_of = [&](int r) { return static_cast<std::int64_t>(whole) * r / size; };
  s.first_env += first_of(place.rank);
  s.n_envs = static_cast<int>(first_of(place.rank + 1) - first_of(place.rank));
  if (!s.summary.empty()) s.summary = (std::filesystem::path(s.summary) / format("{}", place.rank)).string();
  for (std::string* file : {&s.record, &s.pictures.video, &s.pictures.picture, &s.pictures.html}) {
    if (!file->empty()) *file = file_of(*file, static_cast<std::size_t>(place.rank));
  }
}

}  // namespace cohort::cli
