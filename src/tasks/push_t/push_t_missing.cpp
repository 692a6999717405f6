// Stands in for push_t_task.cpp where Chipmunk2D is missing.
#include "tasks/push_t/push_t_task.h"

namespace cohort::tasks {

void register_push_t() {}

}  // namespace cohort::tasks
