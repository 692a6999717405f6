#include "eval/training_rollouts.h"

#include "actor/policy_actor.h"
#include "policies/acting_policy.h"

namespace cohort::eval {

void check_fit(tasks::Task& task, const policies::PolicyInTraining& training) {
  const auto policy = policies::acting_policy(policies::TrainedPolicy(training));
  const actor::PolicyActor actor(*policy, task, "the policy");
}

PolicyResult training_rollouts(tasks::Task& task, const policies::PolicyInTraining& training,
                               const TrainingRolloutSettings& settings) {
  const auto policy = policies::acting_policy(policies::TrainedPolicy(training));
  actor::PolicyActor actor(*policy, task, "rollouts");
  std::vector<std::uint64_t> own;
  for (std::int64_t i = settings.rank; i < settings.episodes; i += settings.world_size)
    own.push_back(settings.first_seed + static_cast<std::uint64_t>(i));
  PolicyResult result;
  result.policy = actor.name();
  if (own.empty()) return result;
  return rollout(
      task, actor, own,
      {.max_steps = settings.max_steps, .end_at_success = settings.end_at_success, .silent = settings.rank != 0});
}

}  // namespace cohort::eval
