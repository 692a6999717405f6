#include "tasks/built_in_tasks.h"

#include "tasks/push_t_task.h"

namespace cohort::tasks {

void register_built_in_tasks() {
  register_push_t();
  register_pick_and_place();
}

}  // namespace cohort::tasks
