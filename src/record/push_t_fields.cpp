#include "record/push_t_fields.h"

#include <algorithm>

#include "core/error.h"

namespace cohort::record {
namespace {

/// Where an action's numbers begin: offsets at the agent, targets at the world's corner.
tasks::Point2 origin_of(const tasks::PushT& world, const std::string& field) {
  if (field == "action") return {0, 0};
  COHORT_THROW_UNLESS(field == "action_offset", "Push-T has no action '{}'; it has action and action_offset", field);
  return world.situation().agent;
}

}  // namespace

std::vector<double> push_t_observation(const tasks::PushT& world, const std::string& field) {
  const tasks::PushTState state = world.observation();
  if (field == "observation/state") return {state.begin(), state.end()};
  if (field == "observation/agent_pos") return {state[0], state[1]};
  COHORT_THROW_UNLESS(field == "observation/environment_state",
                      "Push-T has no observation '{}'; it has observation/state, observation/agent_pos and "
                      "observation/environment_state",
                      field);
  const auto corners = world.keypoints();
  return {corners.begin(), corners.end()};
}

std::vector<double> push_t_recorded_action(const tasks::PushT& world, const std::string& field,
                                           const tasks::PushTAction& action) {
  const tasks::Point2 origin = origin_of(world, field);
  return {action[0] - origin.x, action[1] - origin.y};
}

tasks::PushTAction push_t_action(const tasks::PushT& world, const std::string& field, std::span<const float> values) {
  const tasks::Point2 origin = origin_of(world, field);
  COHORT_THROW_UNLESS(values.size() == 2, "Push-T: {} has 2 numbers, not {}", field, values.size());
  return {std::clamp(origin.x + static_cast<double>(values[0]), 0.0, tasks::kPushTWorld),
          std::clamp(origin.y + static_cast<double>(values[1]), 0.0, tasks::kPushTWorld)};
}

}  // namespace cohort::record
