#include "tasks/terms/program.h"

namespace cohort::tasks::terms {

RunRange scalar_run_range() {
  return ProgramLane<sim::ScalarLane>::run_range;
}

}  // namespace cohort::tasks::terms
