/// A two-link arm in a vertical plane, simulated with MuJoCo under random torques: a table for a first training run.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cohort::tasks {

struct TwoLinkArmSettings {
  std::int64_t rows = 10000;    ///< samples
  std::uint64_t seed = 0;       ///< keys the torques and the sensor noise
  double sample_period = 0.05;  ///< s between rows; torques change at every row
  double torque_range = 8.0;    ///< N·m, torques are uniform within plus and minus this, a third of it at the elbow
  double noise = 1e-3;          ///< standard deviation of the sensor noise, relative to each column's scale
};

/// Column names: 10 measured ones (joint angles wrapped to ±pi in rad, rad/s, rad/s², tip position in m and velocity in
/// m/s), then the 2 targets, the torques (N·m) that caused the motion.
std::vector<std::string> two_link_arm_columns();

/// Simulates the arm; returns rows × 12 values, row by row. Bit-identical for equal settings. Throws Error for rows
/// < 1.
std::vector<double> simulate_two_link_arm(const TwoLinkArmSettings& settings);

/// Writes the table as CSV (header, 9 significant digits), whole or not at all.
void write_two_link_arm_csv(const std::filesystem::path& path, const TwoLinkArmSettings& settings);

}  // namespace cohort::tasks
