/// Statistics of several data sets as if they were one.
#pragma once
#include "data/robot_windows.h"

namespace cohort::train {

/// Means, deviations, bounds over the steps of all sets (octo, combine_dataset_statistics). Quantiles of a union do not
/// follow from those of its parts: they are left out, so that normalisation by quantiles is refused.
data::RobotStatistics combined_statistics(const data::RobotWindows& windows);

}  // namespace cohort::train
