/// A policy of PPO and how it acts in tasks like the one given.
#pragma once
#include <memory>
#include <utility>

#include "actor/policy_actor.h"
#include "rl/ppo_policy.h"

namespace cohort::rl {

struct ActingPpo {
  ActingPpo(std::unique_ptr<policy::Policy> of, const tasks::Task& task)
      : policy(std::move(of)), actor(*policy, task, "ppo") {}
  std::unique_ptr<policy::Policy> policy;
  actor::PolicyActor actor;
};

}  // namespace cohort::rl
