/// The library of tasks that a run has learnt one of.
#pragma once
#include <string>

namespace cohort::tasks {

/// Loads it as the run notes it (task_library of its config.json), unless COHORT_TASKS names one; says so. `path`: of the
/// run, or of one of its checkpoints; what is none changes nothing. Throws Error where the library has moved. The
/// task's file that is not there any more is the copy that the run keeps.
/// own_task: of a task from a file the run's copy is meant, also where the file is still there: what the run has learnt.
void use_library_of_run(const std::string& path, bool own_task = false);

}  // namespace cohort::tasks
