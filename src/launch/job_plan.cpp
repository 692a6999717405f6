#include "launch/job_plan.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include <unistd.h>

#include "core/devices_cpu.h"
#include "core/devices_probe.h"
#include "core/error.h"
#include "launch/spawn.h"

namespace cohort::launch {

JobPlan plan_job(const LaunchSettings& settings, DeviceProbe& probe, std::vector<std::string>& notes) {
  COHORT_THROW_UNLESS(settings.ranks >= 1, "a job needs at least one rank, not {}", settings.ranks);
  COHORT_THROW_UNLESS(!settings.command.empty(), "there is no command to run");
  COHORT_THROW_UNLESS(settings.grace_period >= 0 && settings.grace_period <= kLongestGracePeriod,
                      "--grace-period={}: give 0 to {:.0f} s (a year)", settings.grace_period, kLongestGracePeriod);
  for (const int rank : settings.local_ranks_filter)
    COHORT_THROW_UNLESS(rank >= 0 && rank < settings.ranks,
                        "--local-ranks-filter names rank {}, but there are {} ranks", rank, settings.ranks);
  COHORT_THROW_UNLESS(settings.max_restarts >= 0, "--max-restarts={} must not be negative", settings.max_restarts);
  COHORT_THROW_UNLESS(
      settings.nodes == 1 || settings.elastic || settings.max_restarts == 0,
      "--max-restarts={}: a job on several nodes is restarted only where their agents meet: give all of them the job's "
      "secret (--job-secret-file), or let the scheduler start it again (Slurm: --requeue)",
      settings.max_restarts);
  JobPlan plan;
  plan.settings = settings;
  plan.program = find_program(settings.command.front());

  const DeviceListing listing = settings.without_gpu ? DeviceListing{.absence = "the CPU was asked for"}
                                                     : list_devices(probe, {.initialise_cuda = false});
  DeviceListing narrowed = listing;
  if (settings.gpu_ids) {
    plan.settings.gpu_ids = narrow_mask(listing, *settings.gpu_ids);
    if (plan.settings.gpu_ids) {
      // The chosen GPUs in the order asked for; their entries become the mask that all ranks are given.
      narrowed.mask = plan.settings.gpu_ids;
      narrowed.visible.clear();
      std::string rest = *narrowed.mask + ",";
      for (std::size_t comma; (comma = rest.find(',')) != std::string::npos; rest.erase(0, comma + 1)) {
        const std::string entry = rest.substr(0, comma);
        for (std::size_t i = 0; i < listing.visible.size(); ++i) {
          const auto own = device_environment(listing, DevicePolicy::kOwn, static_cast<int>(i),
                                              static_cast<int>(listing.visible.size()));
          if (own.variables.front().second == entry) narrowed.visible.push_back(listing.visible[i]);
        }
      }
      for (std::size_t i = 0; i < narrowed.visible.size(); ++i) narrowed.visible[i].cuda_index = static_cast<int>(i);
    }
  }
  if (settings.expects_gpu && listing.visible.empty())
    notes.push_back(format("warning: no GPU, the ranks work on the CPU: {}", listing.absence));
  for (const std::string& note : listing.notes) notes.push_back(note);
  for (int local_rank = 0; local_rank < settings.ranks; ++local_rank) {
    plan.devices.push_back(device_environment(narrowed, settings.device_policy, local_rank, settings.ranks));
    if (plan.devices.back().device >= 0) notes.push_back(plan.devices.back().explanation);
    for (const std::string& warning : plan.devices.back().warnings) notes.push_back("warning: " + warning);
  }

  if (settings.nodes == 1 && settings.master_addr != kLoopback && settings.master_addr != "localhost")
    notes.push_back(
        format("--master_addr={}: the store of a job on one node listens on {} only, which is the ranks' "
               "MASTER_ADDR",
               settings.master_addr, kLoopback));
  plan.identity.max_restarts = settings.max_restarts;
  plan.identity.run_id = settings.run_id;
  if (settings.run_id.empty())
    plan.identity.run_id = settings.nodes > 1
                               ? "none"  // torchrun's word; all nodes must have the same one
                               : format("{}-{}-{}", own_host_name(), static_cast<long>(std::time(nullptr)), ::getpid());
  const char* threads = std::getenv("OMP_NUM_THREADS");
  if (settings.threads_per_rank > 0) {
    plan.identity.threads = settings.threads_per_rank;
  } else if (settings.ranks > 1 && !(threads && *threads)) {
    const int cores = available_cores();
    plan.identity.threads = std::max(1, cores / settings.ranks);
    notes.push_back(format("OMP_NUM_THREADS={} for each rank ({} cores, {} ranks); set it to choose otherwise",
                           plan.identity.threads, cores, settings.ranks));
  }
  return plan;
}

}  // namespace cohort::launch
