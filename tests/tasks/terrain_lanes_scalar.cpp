#include "terrain_lanes.h"

namespace cohort::tasks::test {

void points_scalar(const sim::TerrainView& view, const float* x, const float* y, int n, float* out) {
  points_of<sim::ScalarLane>(view, x, y, n, out);
}

}  // namespace cohort::tasks::test
