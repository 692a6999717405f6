/// Looks whether a task keeps what those who run tasks rely on (tasks/task.h): for tasks of one's own, and for ours in
/// CI. `cohort tasks NAME --check` prints it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace cohort::tasks {

struct CheckRow {
  enum class Outcome { kPass, kFail, kSkipped };
  std::string name;  ///< "replay"
  Outcome outcome = Outcome::kPass;
  std::string found;   ///< what was looked at, or what is wrong and where
  std::string remedy;  ///< what to do; empty unless it failed
};

struct CheckSettings {
  std::int64_t steps = 120;    ///< control steps of an episode that is played with random actions, at most
  std::int64_t episodes = 16;  ///< of the expert, or of random actions, for what success pays
  double gamma = 0.99;         ///< discount of who would learn the task
};

/// Makes the task with so many environments.
using MakeTask = std::function<std::unique_ptr<Task>(int n_envs)>;

/// A row for each check, always the same ones. What a task throws is the row's text, not thrown.
std::vector<CheckRow> check_task(const MakeTask& make, const CheckSettings& settings = {});

/// Whether the task's description says that its dense reward is paid until the goal is reached, and the episode then
/// ends: SceneTaskSettings of `reward` and `end_on_success`.
bool ends_on_success_with_dense_reward(const Task& task);

/// What a learner with this discount makes of such a task where a step without success pays `before`, above 0, and the
/// step that succeeds `success`: "" where succeeding is worth more than going on.
std::string why_hovering_pays(double before, double success, double gamma);

}  // namespace cohort::tasks
