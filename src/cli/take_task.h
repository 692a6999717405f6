/// The task of a command line, for the programs that run tasks.
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

/// The task that a command line names, in whatever way other commands take it: by --task, as task=NAME, or as the first word
/// that is no setting, which is taken out of `words`. Empty: none. Throws UsageError where two are named, and
/// as check_path().
std::string take_task(std::vector<std::string>& words, const std::string& option);

}  // namespace cohort::cli
