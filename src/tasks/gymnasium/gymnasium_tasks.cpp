#include "tasks/gymnasium/gymnasium_tasks.h"

#include "tasks/built_in_tasks.h"

namespace cohort::tasks {

void register_gymnasium_tasks() {
  register_planar_tasks();
  register_ant();
  register_humanoid();
  register_inverted_double_pendulum();
  register_pusher();
  register_reacher();
}

}  // namespace cohort::tasks
