#include "tasks/built_in_tasks.h"

namespace cohort::tasks {

void register_built_in_tasks() {
  register_cartpole();
  register_open_drawer();
  register_peg_in_hole();
  register_pick_and_place();
  register_push();
  register_reach();
  register_stack();
}

}  // namespace cohort::tasks
