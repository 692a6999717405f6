#include "terrain_lanes.h"

#if defined(__AVX512F__)
#include "sim/kernels/lane/lane_avx512.h"

namespace cohort::tasks::test {

Points avx512_points() {
  return points_of<sim::Avx512Lane>;
}

}  // namespace cohort::tasks::test
#else
namespace cohort::tasks::test {

Points avx512_points() {
  return nullptr;
}

}  // namespace cohort::tasks::test
#endif
