/// The library of tasks that a run has learnt one of, and which.
#pragma once
#include <string>
#include <vector>

namespace cohort::tasks {

/// Loads it as the run notes it (task_library of its config.json), unless COHORT_TASKS names one; says so. `path`: of the
/// run, or of one of its checkpoints; what is none changes nothing. Throws Error where the library has moved. The
/// task's file that is not there any more is the copy that the run keeps, of what it has learnt or its rollouts have played.
/// own_task: of a task from a file the run's copy is meant, also where the file is still there: what the run has learnt.
void use_library_of_run(const std::string& path, bool own_task = false);

struct TaskOfRun {
  std::string name, engine;
  std::vector<std::string> settings;  ///< key=value
};

/// The task in which the run of `path` (or of one of its checkpoints) has learnt, or in which its rollouts are. The name
/// is empty where the run names none.
TaskOfRun task_of_run(const std::string& path);

}  // namespace cohort::tasks
