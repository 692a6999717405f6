/// The statistics that a checkpoint keeps of a policy's data: one for all data sets, or one for each.
#pragma once
#include <string>

#include "data/robot_statistics.h"

namespace cohort::policies {

/// Those of all sets together, or of `data_set`, a path of data.paths. `text`: JSON. Throws Error naming `source`, and
/// the sets where one has to be chosen.
data::RobotStatistics statistics_of_set(const std::string& text, const std::string& data_set,
                                        const std::string& source);

}  // namespace cohort::policies
