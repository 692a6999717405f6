/// Where a height scan looks: points of the sensor's frame, x forwards, y to the left. The orders are those of Isaac
/// Lab's and mjlab's patterns (GridPatternCfg with x fastest; mjlab's RingPatternCfg).
#pragma once
#include <array>
#include <vector>

namespace cohort::tasks {

struct ScanRing {
  double radius = 0.1;  ///< m
  int num_samples = 8;  ///< from x to y, evenly
};

/// A grid, unless there are rings.
struct ScanSettings {
  std::array<double, 2> size{1.6, 1.0};  ///< m along x and y; both ends have points
  double resolution = 0.1;               ///< m between two points
  std::vector<ScanRing> rings{};
  bool include_center = true;  ///< rings: the first point is (0, 0)
};

/// The points, (n, 2), m. Throws Error for settings that have none, or more than 10,000.
std::vector<std::array<float, 2>> scan_points(const ScanSettings& settings);

/// A point of a frame that stands at (x, y) and is turned about the vertical only, m, in the world.
std::array<float, 2> scan_point_in_world(const std::array<float, 2>& point, float x, float y, float yaw);

}  // namespace cohort::tasks
