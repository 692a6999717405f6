#include "sim/kernels/lane/lane_avx512.h"
#include "tasks/terms/program.h"

namespace cohort::tasks::terms {

void run_avx512(const Evaluation& e, int first, int last, void* registers) {
  ProgramLane<sim::Avx512Lane>::run_range(e, first, last, registers);
}

}  // namespace cohort::tasks::terms
