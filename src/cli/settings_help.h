/// `--help` of trainings, whose settings are too many for a screen: the basic ones first, the others by group;
/// `--help KEY` explains a setting, a group, or all whose names hold that part; `--help all` explains all.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "run/training.h"

namespace cohort::cli {

/// The settings of the training that `keys` name; without keys the basic ones and the names of the groups. Throws UsageError for
/// a key that is like none.
std::string settings_help(const config::Fields& fields, const run::Training& training,
                          const std::vector<std::string>& keys);

/// Whether `key` names something of these settings: then it is a key of --help, else data or a task.
bool names_setting(const config::Fields& fields, const std::string& key);

}  // namespace cohort::cli
