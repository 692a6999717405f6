/// The task of a command line, for the programs that run tasks.
#pragma once
#include <string>
#include <vector>

#include "tasks/registry.h"

namespace cohort::cli {

/// The task that a command line names, in whatever way other commands take it: by --task, as task=NAME, or as the first word
/// that is no setting, which is taken out of `words`. Empty: none. Throws UsageError where two are named, and
/// as check_path().
std::string take_task(std::vector<std::string>& words, const std::string& option);

/// The task in which a run (or the run of a checkpoint) has learnt, or in which its rollouts are, and into `settings` its engine,
/// unless that is typed, and its settings, before those that are. Says so. Empty: the run names none.
std::string take_task_of_run(const std::string& run, tasks::TaskSettings& settings);

}  // namespace cohort::cli
