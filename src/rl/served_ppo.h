/// A policy of `cohort train ppo` as it is served (serve/policy.h): the mean action for what it sees, one at a time.
///
///   const PpoTask learnt = task_of_ppo_run(run);
///   const auto task = tasks::make_task(learnt.name, {.overrides = learnt.settings});   // says what is observed and done
///   std::unique_ptr<serve::Policy> served = serve_ppo(run, *task);
#pragma once
#include <filesystem>
#include <memory>

#include "serve/policy.h"
#include "tasks/task.h"

namespace cohort::rl {

/// Observations are called as in the task. averaged as of PpoActor; throws what it throws. The task is not needed
/// afterwards.
std::unique_ptr<serve::Policy> serve_ppo(const std::filesystem::path& path, const tasks::Task& task,
                                         bool averaged = true);

}  // namespace cohort::rl
