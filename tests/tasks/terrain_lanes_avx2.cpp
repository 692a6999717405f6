#include "terrain_lanes.h"

#if defined(__AVX2__)
#include "sim/kernels/lane/lane_avx2.h"

namespace cohort::tasks::test {

Points avx2_points() {
  return points_of<sim::Avx2Lane>;
}

}  // namespace cohort::tasks::test
#else
namespace cohort::tasks::test {

Points avx2_points() {
  return nullptr;
}

}  // namespace cohort::tasks::test
#endif
