#include "tasks/terms/program.h"

#if defined(__AVX512F__)
#include "sim/kernels/lane/lane_avx512.h"

namespace cohort::tasks::terms {

RunRange avx512_run_range() {
  return ProgramLane<sim::Avx512Lane>::run_range;
}

}  // namespace cohort::tasks::terms
#else
namespace cohort::tasks::terms {

RunRange avx512_run_range() {
  return nullptr;
}

}  // namespace cohort::tasks::terms
#endif
