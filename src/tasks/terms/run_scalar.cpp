#include "tasks/terms/program.h"

namespace cohort::tasks::terms {

void run_scalar(const Evaluation& e, int first, int last, void* registers) {
  ProgramLane<sim::ScalarLane>::run_range(e, first, last, registers);
}

}  // namespace cohort::tasks::terms
