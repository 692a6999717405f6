#include "cli/train_rollouts.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/json_text.h"
#include "eval/training_rollouts.h"
#include "policies/recorded_pictures.h"
#include "rank/environment.h"
#include "report/metric_names.h"
#include "rl/training.h"
#include "tasks/file/task_file.h"
#include "tasks/registry.h"

namespace cohort::cli {

train::RolloutFunction rollouts_of(train::RunSettings& settings, const std::string& run) {
  const train::RolloutSettings& r = settings.rollout;
  if (!r.enabled) return {};
  COHORT_THROW_UNLESS(!r.task.empty(), "rollout.enabled=true: say which task, rollout.task=NAME (`cohort tasks`)");
  COHORT_THROW_UNLESS(r.n >= 1 && r.n_envs >= 1, "rollout.n={}, rollout.n_envs={}: each must be at least 1", r.n,
                      r.n_envs);
  const int sharing = std::max(1, rank::read_environment().local_world_size);
  tasks::TaskSettings task_settings{.n_envs = static_cast<int>(std::min<std::int64_t>(r.n_envs, r.n)),
                                    .threads = std::max(1, available_cores() / sharing),
                                    .overrides = r.task_settings};
  tasks::use_library(r.task_library, "rollout.task_library of the configuration");
  // Of a run that goes on: what it keeps of a task's file, where that is gone or cannot be used any more.
  if (!run.empty()) tasks::use_kept_task(r.task, run, true);
  auto task = std::make_shared<std::unique_ptr<tasks::Task>>(tasks::make_task(r.task, task_settings));
  settings.rollout.task_library = tasks::library_of(r.task);
  auto drawn = std::make_shared<policies::RecordedPictures>();  // as the task draws now; empty: as it does by default
  return [task, task_settings, drawn, r](const train::RolloutRequest& request) {
    std::vector<train::Metric> metrics;
    if (!request.keep_in.empty()) {
      tasks::keep_task(r.task, request.keep_in, r.task_settings);
      return metrics;
    }
    // The policy is shown what drew the pictures that it learns from.
    const policies::RecordedPictures pictures =
        policies::recorded_pictures(try_json<config::Json>(request.configuration));
    if (pictures != *drawn) {
      tasks::TaskSettings made = task_settings;
      if (!pictures.renderer.empty()) made.pictures.renderer = pictures.renderer;
      if (pictures.size.size() == 2) made.pictures.height = pictures.size[0], made.pictures.width = pictures.size[1];
      *task = tasks::make_task(r.task, made);
      *drawn = pictures;
    }
    const policies::PolicyInTraining training{request.model, request.configuration, request.statistics};
    if (request.check_only) {
      eval::check_fit(**task, training);
      return metrics;
    }
    const eval::PolicyResult result = eval::training_rollouts(**task, training,
                                                              {.episodes = r.n,
                                                               .max_steps = r.horizon,
                                                               .end_at_success = r.terminate_on_success,
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

train::RolloutTaskFunction rollout_tasks() {
  return [](const std::string& environment, std::int64_t horizon, bool ends) {
    train::RolloutTask found;
    const std::vector<tasks::TaskEntry>& known = tasks::all_tasks();
    if (std::none_of(known.begin(), known.end(), [&](const auto& entry) { return entry.name == environment; })) {
      found.why_not = format("no task is called '{}' as the environment is", environment);
      return found;
    }
    found.task = environment;
    const auto task = tasks::make_task(environment, {});
    const tasks::TaskFields fields = task->settings();
    const auto has = [&](const char* setting) { return fields && fields->has(setting); };
    // The task's own limits give way to the configuration's.
    if (task->spec().horizon > 0 && horizon > task->spec().horizon) {
      if (!has("horizon")) {
        found.task.clear();
        found.why_not = format("{} ends its episodes after {} steps, and experiment.rollout.horizon is {}", environment,
                               task->spec().horizon, horizon);
        return found;
      }
      found.settings.push_back(format("horizon={}", horizon));
    }
    if (!ends && has("end_on_success")) found.settings.push_back("end_on_success=false");
    return found;
  };
}

std::vector<std::unique_ptr<run::Training>> trainings_in_simulation() {
  std::vector<std::unique_ptr<run::Training>> all;
  all.push_back(rl::ppo_training());
  return all;
}

}  // namespace cohort::cli
