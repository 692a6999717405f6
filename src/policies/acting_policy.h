/// Trained policies (trained_policy.h) as policies that act (policy/policy.h).
///
///   const auto policy = acting_policy(TrainedPolicy("outputs/push/latest"));
///   actor::PolicyActor actor(*policy, *task, "push");
#pragma once
#include <memory>
#include <string>

#include "policies/trained_policy.h"
#include "policy/policy.h"

namespace cohort::policies {

/// What it must be shown and gives is called as in its data. Of a policy that learnt from every k-th step (data.stride) an
/// answer has each action k times. `settings`: a few words of those on which its actions depend, beside its summary.
std::unique_ptr<policy::Policy> acting_policy(TrainedPolicy policy, const std::string& settings = "");

/// policy::load() takes every run and checkpoint that no kind registered later claims.
void register_trained_policies();

}  // namespace cohort::policies
