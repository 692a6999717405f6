#include "sim/kernels/lane/lane_avx512.h"
#include "terrain_lanes.h"

namespace cohort::tasks::test {

void points_avx512(const sim::TerrainView& view, const float* x, const float* y, int n, float* out) {
  points_of<sim::Avx512Lane>(view, x, y, n, out);
}

}  // namespace cohort::tasks::test
