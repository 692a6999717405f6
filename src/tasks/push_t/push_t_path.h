/// Ways for Push-T's agent around the block.
#pragma once
#include <vector>

#include "tasks/push_t/push_t.h"

namespace cohort::tasks {

/// Distance of a point from a T's boundary; negative inside.
double distance_to_t(const PushTPose& pose, Point2 point);

/// A way for the agent's centre from `from` to `to` that keeps its rim off the block: Dijkstra (1959) on a grid of 8 px
/// with eight neighbours. Begins at the free grid point nearest to `from` and ends with `to`. Empty where there is
/// none.
std::vector<Point2> path_around_t(const PushTPose& pose, Point2 from, Point2 to);

}  // namespace cohort::tasks
