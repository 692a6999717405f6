#include "tasks/terms/program.h"

#if defined(__AVX2__)
#include "sim/kernels/lane/lane_avx2.h"

namespace cohort::tasks::terms {

RunRange avx2_run_range() {
  return ProgramLane<sim::Avx2Lane>::run_range;
}

}  // namespace cohort::tasks::terms
#else
namespace cohort::tasks::terms {

RunRange avx2_run_range() {
  return nullptr;
}

}  // namespace cohort::tasks::terms
#endif
