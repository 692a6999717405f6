/// Areas of convex polygons in the plane.
#pragma once
#include <cmath>
#include <span>

namespace cohort::tasks {

struct Point2 {
  double x = 0, y = 0;
};

inline double distance(Point2 a, Point2 b) {
  return std::hypot(a.x - b.x, a.y - b.y);
}

/// Signed area by the shoelace formula: positive where the corners run counter-clockwise (y up).
double signed_area(std::span<const Point2> polygon);

/// Area that two convex polygons share, of either orientation (Sutherland and Hodgman, "Reentrant polygon clipping",
/// CACM 1974). 0 where a polygon has fewer than 3 corners.
double convex_intersection_area(std::span<const Point2> a, std::span<const Point2> b);

}  // namespace cohort::tasks
