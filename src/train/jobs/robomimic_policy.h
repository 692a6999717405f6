/// The sections "algo" and "observation" of a robomimic configuration as the model of a policy job.
#pragma once
#include <string>

#include "core/config.h"
#include "policies/policy_settings.h"
#include "policies/robomimic.h"

namespace cohort::train {

/// Fills `model`, and gives what the sections say about training. `algorithm`: algo_name. `order`: how observations are
/// joined; kAsListed is RLDS, where an instruction's embedding is no field. Throws Error naming every key that cannot be
/// honoured.
policies::RobomimicPolicy read_policy(const std::string& algorithm, const config::Json& algo,
                                      const config::Json& observation, const std::string& source,
                                      policies::ObservationOrder order, policies::PolicySettings& model);

}  // namespace cohort::train
