#include "terrain_lanes.h"

namespace cohort::tasks::test {

Points scalar_points() {
  return points_of<sim::ScalarLane>;
}

}  // namespace cohort::tasks::test
