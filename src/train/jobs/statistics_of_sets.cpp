#include "train/jobs/statistics_of_sets.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cohort::train {
namespace {

/// Joins the vector `which` of all sets.
data::VectorStatistics joined(const data::RobotWindows& windows, data::VectorStatistics data::RobotStatistics::*which) {
  data::VectorStatistics all = windows.statistics(0).*which;
  all.q01.clear();
  all.q99.clear();
  double steps = 0;
  for (std::size_t set = 0; set < windows.sets(); ++set)
    steps += static_cast<double>(windows.statistics(set).transitions);
  COHORT_CHECK(steps > 0, "the data sets have no steps");
  for (std::size_t k = 0; k < all.width(); ++k) {
    double mean = 0, square = 0;
    for (std::size_t set = 0; set < windows.sets(); ++set) {
      const data::RobotStatistics& statistics = windows.statistics(set);
      const data::VectorStatistics& one = statistics.*which;
      const double share = static_cast<double>(statistics.transitions) / steps;
      mean += share * one.mean[k];
      all.min[k] = std::min(all.min[k], one.min[k]);
      all.max[k] = std::max(all.max[k], one.max[k]);
    }
    for (std::size_t set = 0; set < windows.sets(); ++set) {
      const data::RobotStatistics& statistics = windows.statistics(set);
      const data::VectorStatistics& one = statistics.*which;
      const double share = static_cast<double>(statistics.transitions) / steps, off = one.mean[k] - mean;
      square += share * (one.std[k] * one.std[k] + off * off);
    }
    all.mean[k] = mean;
    all.std[k] = std::sqrt(square);
  }
  return all;
}

}  // namespace

data::RobotStatistics combined_statistics(const data::RobotWindows& windows) {
  data::RobotStatistics all;
  all.action = joined(windows, &data::RobotStatistics::action);
  all.proprio = joined(windows, &data::RobotStatistics::proprio);
  for (std::size_t set = 0; set < windows.sets(); ++set) {
    all.transitions += windows.statistics(set).transitions;
    all.trajectories += windows.statistics(set).trajectories;
  }
  return all;
}

}  // namespace cohort::train
