/// Where a height scan looks: points of the sensor's frame, x forwards, y to the left. The order is that of
/// Isaac Lab's and mjlab's GridPatternCfg, x fastest.
#pragma once
#include <array>
#include <vector>

namespace cohort::tasks {

/// A grid.
struct ScanSettings {
  std::array<double, 2> size{1.6, 1.0};  ///< m along x and y; both ends have points
  double resolution = 0.1;               ///< m between two points
};

/// The points, (n, 2), m. Throws Error for settings that have none, or more than 10,000.
std::vector<std::array<float, 2>> scan_points(const ScanSettings& settings);

}  // namespace cohort::tasks
