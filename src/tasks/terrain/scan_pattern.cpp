#include "tasks/terrain/scan_pattern.h"

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace cohort::tasks {

namespace {

constexpr int kMostPoints = 10000;

}  // namespace

std::vector<std::array<float, 2>> scan_points(const ScanSettings& s) {
  std::vector<std::array<float, 2>> points;
  if (!s.rings.empty()) {
    if (s.include_center) points.push_back({0, 0});
    for (const ScanRing& ring : s.rings) {
      COHORT_THROW_UNLESS(ring.radius > 0 && ring.num_samples > 0 && ring.num_samples <= kMostPoints,
                          "a ring of radius {} m with {} points: the radius is above 0, the points from 1 to {}",
                          ring.radius, ring.num_samples, kMostPoints);
      for (int i = 0; i < ring.num_samples; ++i) {
        const double angle = 2 * std::numbers::pi * i / ring.num_samples;
        points.push_back(
            {static_cast<float>(ring.radius * std::cos(angle)), static_cast<float>(ring.radius * std::sin(angle))});
      }
    }
  } else {
    COHORT_THROW_UNLESS(s.resolution > 0 && s.size[0] >= 0 && s.size[1] >= 0,
                        "a scan of {} x {} m every {} m: the sides are from 0 m on, the resolution above 0", s.size[0],
                        s.size[1], s.resolution);
    const double nx = std::floor(s.size[0] / s.resolution + 0.5) + 1,
                 ny = std::floor(s.size[1] / s.resolution + 0.5) + 1;
    COHORT_THROW_UNLESS(nx * ny <= kMostPoints,
                        "a scan of {} x {} m every {} m has {} points, and at most {} are looked at", s.size[0],
                        s.size[1], s.resolution, nx * ny, kMostPoints);
    for (int k = 0; k < static_cast<int>(ny); ++k)
      for (int i = 0; i < static_cast<int>(nx); ++i)
        points.push_back({static_cast<float>(-s.size[0] / 2 + i * s.resolution),
                          static_cast<float>(-s.size[1] / 2 + k * s.resolution)});
  }
  COHORT_THROW_UNLESS(static_cast<int>(points.size()) <= kMostPoints, "{} points: at most {} are looked at",
                      points.size(), kMostPoints);
  return points;
}

std::array<float, 2> scan_point_in_world(const std::array<float, 2>& point, float x, float y, float yaw) {
  const float c = std::cos(yaw), s = std::sin(yaw);
  return {x + c * point[0] - s * point[1], y + s * point[0] + c * point[1]};
}

}  // namespace cohort::tasks
