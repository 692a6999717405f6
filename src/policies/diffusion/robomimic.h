/// The section "algo" of robomimic's diffusion_policy, as the DROID fork has it.
#pragma once
#include "policies/diffusion/diffusion_policy.h"
#include "policies/robomimic.h"

namespace cohort::policies {

/// Reads it into the settings and the rules of training; what cannot be honoured the section refuses.
void read_robomimic_algo(config::JsonSection& algo, models::DiffusionPolicySettings& settings, RobomimicPolicy& policy);

}  // namespace cohort::policies
