/// What resume=PATH means: which run is continued, and from which of its checkpoints.
#pragma once
#include <filesystem>
#include <string>

namespace cohort::train {

struct ResumeTarget {
  std::filesystem::path run;  ///< its folder
  std::string checkpoint;     ///< path of the checkpoint that was named; empty: the run's last whole one
};

/// A run's folder, its folder of checkpoints, or one of its checkpoints, by its name or by the links `last` and `best`.
/// What is none of these is taken as the run's folder, where what is missing is said when it is read. Throws Error for
/// a checkpoint that lies in no run's folder.
ResumeTarget resume_target(const std::string& path);

}  // namespace cohort::train
