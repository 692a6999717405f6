#include "sim/kernels/lane/lane_avx2.h"
#include "tasks/terms/program.h"

namespace cohort::tasks::terms {

void run_avx2(const Evaluation& e, int first, int last, void* registers) {
  ProgramLane<sim::Avx2Lane>::run_range(e, first, last, registers);
}

}  // namespace cohort::tasks::terms
