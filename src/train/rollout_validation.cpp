#include "train/rollout_validation.h"

#include <utility>

#include "core/error.h"

namespace cohort::train {

void describe(config::Fields& fields, RolloutSettings& s) {
  fields.add("enabled", s.enabled, "after a validation, play episodes of a task and count successes");
  fields.add("task", s.task, "which, as `cohort tasks` lists them");
  fields.add("task_settings", s.task_settings, "key=value of the task");
  fields.add("task_library", s.task_library,
             "shared library that the task comes from: noted by a run; COHORT_TASKS names another");
  fields.add("n", s.n, "episodes, all ranks together");
  fields.add("horizon", s.horizon, "steps of an episode; 0: the task's horizon");
  fields.add("rate", s.rate, "every so many validations");
  fields.add("warmstart", s.warmstart, "validations before the first rollouts");
  fields.add("terminate_on_success", s.terminate_on_success,
             "an episode ends when its goal is reached, also where the task lets it go on; false: the task decides");
  fields.add("n_envs", s.n_envs, "environments at a time, of each rank");
  fields.add("first_seed", s.first_seed, "of the episodes");
}

Validator with_rollouts(Validator validator, const RolloutSettings& settings, RolloutFunction rollouts,
                        RolloutRequest request) {
  COHORT_THROW_UNLESS(settings.n >= 1 && settings.rate >= 1 && settings.n_envs >= 1,
                      "rollout.n={}, rollout.rate={}, rollout.n_envs={}: each must be at least 1", settings.n,
                      settings.rate, settings.n_envs);
  COHORT_THROW_UNLESS(settings.warmstart >= 0, "rollout.warmstart={} must not be negative", settings.warmstart);
  return [validator = std::move(validator), rate = settings.rate, warmstart = settings.warmstart,
          rollouts = std::move(rollouts), request = std::move(request)](torch::nn::Module& model, std::int64_t number) {
    std::vector<Metric> metrics;
    if (validator) metrics = validator(model, number);
    if (number % rate != 0 || number <= warmstart) return metrics;
    RolloutRequest now = request;
    now.model = &model;
    for (Metric& metric : rollouts(now)) metrics.push_back(std::move(metric));
    return metrics;
  };
}

}  // namespace cohort::train
