/// The names under which Push-T is recorded, so that a policy trained on recordings finds the same when it acts.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "tasks/push_t.h"

namespace cohort::record {

/// What a recording of this world holds now under "observation/state" (5), "observation/agent_pos" (2) or
/// "observation/environment_state" (16). Throws Error for another name.
std::vector<double> push_t_observation(const tasks::PushT& world, const std::string& field);

/// What a recording of this world holds under "action" (2) or "action_offset" (2) for an action. Throws Error for
/// another name.
std::vector<double> push_t_recorded_action(const tasks::PushT& world, const std::string& field,
                                           const tasks::PushTAction& action);

/// The other way: the action in this world that `values` of the field stand for, cut to the world. Throws Error for
/// another name or number of values.
tasks::PushTAction push_t_action(const tasks::PushT& world, const std::string& field, std::span<const float> values);

}  // namespace cohort::record
