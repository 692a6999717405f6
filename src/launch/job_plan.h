/// What a job is once everything is settled that does not change between its attempts.
///
///   std::vector<std::string> notes;
///   JobPlan plan = plan_job(settings, *system_probe(), notes);
///   plan.identity.meeting = rendezvous->meet(0);
///   WorkerGroup group(plan, console, guard, *rendezvous);
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "launch/settings.h"
#include "launch/worker_environment.h"

namespace cohort {
class DeviceProbe;
}

namespace cohort::launch {

/// What is fixed before the first attempt.
struct JobPlan {
  LaunchSettings settings;
  std::string program;                     ///< the path behind settings.command[0]
  JobIdentity identity;                    ///< attempt and meeting are set before each group
  std::vector<DeviceEnvironment> devices;  ///< by local rank
  std::filesystem::path log_dir;  ///< where attempt_<n>/rank_<r>/ are made; a temporary folder when nothing is stored
  bool keeps_logs = false;        ///< log_dir stays when the job has ended
};

/// Settles program, devices of each rank, threads and run id. Throws Error for what cannot work, before anything is
/// started. `notes` receives what a user should be told.
JobPlan plan_job(const LaunchSettings& settings, DeviceProbe& probe, std::vector<std::string>& notes);

}  // namespace cohort::launch
