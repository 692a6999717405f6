/// `cohort simulate` in several processes: of `--devices`, or of a launcher.
#pragma once
#include <string>
#include <vector>

#include "cli/simulate_run.h"
#include "rank/environment.h"

namespace cohort::cli {

/// "0,1,3" into its numbers; throws UsageError for what is none or repeated.
std::vector<int> split_devices(const std::string& text);

/// A process per device through the agent, each with a contiguous share of the environments by their global ids, so
/// that together they compute what one process computes. The exit code of the job. Throws UsageError for fewer
/// environments than devices.
int simulate_on(const std::vector<int>& devices, const SimulateSettings& s, const std::vector<std::string>& arguments);

/// Takes a process' share of the environments, contiguous by their global ids, and gives its files its number.
/// Throws UsageError for fewer environments than processes.
void take_share(SimulateSettings& s, const rank::Environment& place);

}  // namespace cohort::cli
