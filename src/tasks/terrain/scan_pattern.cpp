#include "tasks/terrain/scan_pattern.h"

#include <cmath>

#include "core/error.h"

namespace cohort::tasks {

namespace {

constexpr int kMostPoints = 10000;

}  // namespace

std::vector<std::array<float, 2>> scan_points(const ScanSettings& s) {
  std::vector<std::array<float, 2>> points;
  COHORT_THROW_UNLESS(s.resolution > 0 && s.size[0] >= 0 && s.size[1] >= 0,
                      "a scan of {} x {} m every {} m: the sides are from 0 m on, the resolution above 0", s.size[0],
                      s.size[1], s.resolution);
  const double nx = std::floor(s.size[0] / s.resolution + 0.5) + 1, ny = std::floor(s.size[1] / s.resolution + 0.5) + 1;
  COHORT_THROW_UNLESS(nx * ny <= kMostPoints,
                      "a scan of {} x {} m every {} m has {} points, and at most {} are looked at", s.size[0],
                      s.size[1], s.resolution, nx * ny, kMostPoints);
  for (int k = 0; k < static_cast<int>(ny); ++k)
    for (int i = 0; i < static_cast<int>(nx); ++i)
      points.push_back({static_cast<float>(-s.size[0] / 2 + i * s.resolution),
                        static_cast<float>(-s.size[1] / 2 + k * s.resolution)});
  return points;
}

}  // namespace cohort::tasks
