/// Training and validation data have no episode in common.
#pragma once
#include "data/robot_windows.h"

namespace cohort::data {

/// Throws Error counting the episodes that both draw windows from, and naming the first, whatever names their files and
/// masks were opened by.
void check_disjoint(const RobotWindows& train, const RobotWindows& validation);

}  // namespace cohort::data
