/// The sections "algo" and "observation" of a robomimic configuration as the model of a policy job.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "policies/diffusion/robomimic_config.h"
#include "policies/policy_settings.h"

namespace cohort::train {

/// What these sections say about training.
struct TrainingRules {
  models::RobomimicOptimizer optimizer;
  bool ema_enabled = false;
  double ema_power = 0.75;
  bool pretrained_backbone = false;
};

/// `algorithm`: algo_name, "diffusion_policy" or "bc". `order`: how observations are joined; kAsListed is RLDS, where
/// an instruction's embedding is no field. Throws Error naming every key that cannot be honoured.
void read_policy(const std::string& algorithm, const config::Json& algo, const config::Json& observation,
                 const std::string& source, models::ObservationOrder order, policies::PolicySettings& model,
                 TrainingRules& rules);

}  // namespace cohort::train
