/// A trained policy as it is served (serve/policy.h).
///
///   std::unique_ptr<serve::Policy> served = serve_policy(TrainedPolicy("outputs/push/latest"), /*control_frequency=*/20);
///   serve::PolicyServer server(...);
#pragma once
#include <memory>

#include "policies/trained_policy.h"
#include "serve/policy.h"

namespace cohort::policies {

/// What it must be shown and gives is called as in its data. A policy that learnt from every k-th step (data.stride) gives each
/// action k times. `control_frequency`: Hz at which its actions are executed, for policies that learnt several; 0: not
/// known. Throws Error where such a policy is not told, or learnt none of that frequency.
std::unique_ptr<serve::Policy> serve_policy(TrainedPolicy policy, double control_frequency = 0);

}  // namespace cohort::policies
