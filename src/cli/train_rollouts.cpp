#include "cli/train_rollouts.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "dist/rank_environment.h"
#include "eval/training_rollouts.h"
#include "report/metric_names.h"
#include "tasks/registry.h"

namespace cohort::cli {

train::RolloutFunction rollouts_of(const train::RunSettings& settings) {
  const train::RolloutSettings& r = settings.rollout;
  if (!r.enabled) return {};
  COHORT_THROW_UNLESS(!r.task.empty(), "rollout.enabled=true: say which task, rollout.task=NAME (`cohort tasks`)");
  COHORT_THROW_UNLESS(r.n >= 1 && r.n_envs >= 1, "rollout.n={}, rollout.n_envs={}: each must be at least 1", r.n,
                      r.n_envs);
  const int sharing = std::max(1, dist::read_rank_environment().local_world_size);
  const std::shared_ptr<tasks::Task> task =
      tasks::make_task(r.task, {.n_envs = static_cast<int>(std::min<std::int64_t>(r.n_envs, r.n)),
                                .threads = std::max(1, available_cores() / sharing),
                                .overrides = r.task_settings});
  return [task, r](const train::RolloutRequest& request) {
    const policy::PolicyInTraining training{request.model, request.configuration, request.statistics};
    std::vector<train::Metric> metrics;
    if (request.check_only) {
      eval::check_fit(*task, training);
      return metrics;
    }
    const eval::PolicyResult result = eval::training_rollouts(*task, training,
                                                              {.episodes = r.n,
                                                               .max_steps = r.horizon,
                                                               .first_seed = r.first_seed,
                                                               .rank = request.rank,
                                                               .world_size = request.world_size});
    const auto n = static_cast<double>(result.episodes.size());
    const auto successes = static_cast<double>(result.successes());
    namespace metric = report::metric;
    metrics.push_back({metric::kRolloutFailure, n - successes, n});
    metrics.push_back({metric::kRolloutSuccess, successes, n});
    metrics.push_back({metric::kRolloutReturn, n * result.mean_return(), n});
    metrics.push_back({metric::kRolloutSteps, n * result.mean_steps(), n});
    return metrics;
  };
}

}  // namespace cohort::cli
