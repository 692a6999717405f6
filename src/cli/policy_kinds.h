/// What acts, by where it lies.
#pragma once

namespace cohort::cli {

/// After this policy::load() takes every kind of policy that this program has: one more kind is a line here.
void register_policy_kinds();

}  // namespace cohort::cli
