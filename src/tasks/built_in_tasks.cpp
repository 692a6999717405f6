#include "tasks/built_in_tasks.h"

#include "tasks/file/task_file.h"
#include "tasks/push_t/push_t_task.h"

namespace cohort::tasks {

void register_built_in_tasks() {
  register_push_t();
  register_library_task("cartpole-balance.yaml");
  register_library_task("cartpole-swingup.yaml");
  register_open_drawer();
  register_peg_in_hole();
  register_pick_and_place();
  register_push();
  register_library_task("reach.yaml");
  register_stack();
  register_library_task("quadruped-velocity.yaml");
  register_gymnasium_tasks();
  register_aloha_tasks();
  libero::register_libero_tasks();
}

}  // namespace cohort::tasks
