/// The agent: starts a job, watches it, stops it, and says how it ended.
#pragma once
#include "launch/settings.h"

namespace cohort::launch {

/// Runs the job to its end and returns the exit code for the shell: 0; the code of the rank that failed first, or 128 +
/// the signal that ended it; 128 + the signal that stopped the agent, unless a rank had failed before. A signal of
/// LaunchSettings::signals is forwarded: SIGTERM, SIGINT, SIGHUP and SIGQUIT ask the ranks to stop (SIGKILL after the
/// grace period; at once when a second one arrives). Others are only passed on; ranks that end by SIGUSR1 or SIGUSR2, a
/// scheduler's notice, have been stopped and did not fail. SIGTSTP and SIGCONT suspend and resume the ranks with the
/// agent. After a failure the job is started again up to max_restarts times, unless LaunchSettings::tells_first_step
/// says that it cannot help. Throws Error when the job cannot be started.
int run_job(const LaunchSettings& settings);

}  // namespace cohort::launch
