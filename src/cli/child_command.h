/// Another command of Cohort as a child of this one.
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

/// Runs `cohort WORDS...` with this process's terminal and waits for it. SIGINT and SIGTERM go to the child; this
/// process ends when the child has. Returns its exit code, 128 + signal where one ended it. Throws Error where it
/// cannot be started.
int run_cohort(const std::vector<std::string>& words);

}  // namespace cohort::cli
