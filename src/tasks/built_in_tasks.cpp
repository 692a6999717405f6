#include "tasks/built_in_tasks.h"

namespace cohort::tasks {

void register_built_in_tasks() {}

}  // namespace cohort::tasks
