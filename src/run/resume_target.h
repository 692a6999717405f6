/// What resume=PATH means: which run is continued, and from which of its checkpoints.
#pragma once
#include <filesystem>
#include <string>

#include "core/config.h"

namespace cohort::run {

struct ResumeTarget {
  std::filesystem::path run;  ///< its folder
  std::string checkpoint;     ///< path of the checkpoint that was named; empty: the run's last whole one
};

/// A run's folder, its folder of checkpoints, or one of its checkpoints, by its name or by the links `last` and `best`.
/// Throws Error for what is none of these, and for a checkpoint that lies in no run's folder.
ResumeTarget resume_target(const std::string& path);

/// Throws Error where the data of a run that is continued are not where its settings say, with what to do: relative
/// paths hold in the folder where the run was begun. `fields`: the settings as they are to be used.
void check_data_of_run(const config::Fields& fields);

}  // namespace cohort::run
