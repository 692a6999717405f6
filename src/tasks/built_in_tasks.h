/// The tasks that Cohort brings: each file registers its own, and this is the list of the files.
#pragma once

namespace cohort::tasks {

/// Called once, by all_tasks().
void register_built_in_tasks();

}  // namespace cohort::tasks
