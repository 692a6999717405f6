/// ACT's own fields of config.json in LeRobot's folders (policies/lerobot_folder.h): lerobot/policies/act/configuration_act.py.
#pragma once
#include "policies/act/act_policy.h"
#include "policies/lerobot_folder.h"

namespace cohort::policies {

/// Throws Error naming the field that cannot be honoured.
void read_lerobot_act(const LeRobotPolicy& policy, models::ActSettings& settings);
void write_lerobot_act(const models::ActSettings& settings, LeRobotPolicy& policy);

}  // namespace cohort::policies
