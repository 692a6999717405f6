/// What the forward process of a diffusion model can be set to (NoiseScheduleSettings).
#pragma once
#include <string>
#include <vector>

namespace cohort::models {

/// The values of beta_schedule.
const std::vector<std::string>& beta_schedules();
/// The values of prediction_type.
const std::vector<std::string>& prediction_types();

}  // namespace cohort::models
