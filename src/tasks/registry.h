/// Tasks by name: ours, and those of shared libraries that COHORT_TASKS names.
///
///   register_task({.name = "my-task", .summary = "...", .make = [](const TaskSettings& s) { ... }});
///   std::unique_ptr<Task> task = make_task("pick-and-place", {.n_envs = 256});
///
/// A library of a user's own defines `extern "C" void cohort_register_tasks()`, which calls register_task() for each of
/// its tasks (examples/my_task).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace cohort::tasks {

struct TaskEntry {
  std::string name;     ///< letters, digits, hyphens, underscores; ours have small ones, others' tasks their own
  std::string summary;  ///< one line
  std::function<std::unique_ptr<Task>(const TaskSettings&)> make;
  /// The task's own settings with their defaults, known without its simulation; not given: a task is made to ask it.
  std::function<TaskFields()> settings = {};
  /// key=value of `cohort train ppo` with which it learns better than with PPO's defaults (docs/guide/reinforcement_learning.md).
  std::vector<std::string> ppo = {};
  std::string origin = "";  ///< the shared library that it comes from; empty: built in
};

/// Throws Error for a name that is taken or has other characters.
void register_task(TaskEntry entry);

/// All of them by name. The first call registers ours and loads the libraries of COHORT_TASKS (paths with ':' between
/// them); throws Error where one cannot be loaded or defines no cohort_register_tasks.
const std::vector<TaskEntry>& all_tasks();

/// Of this name; null: there is none.
const TaskEntry* find_task(const std::string& name);

/// The task's own settings with their defaults; null where it has none. Throws Error as make_task() does.
TaskFields settings_of(const std::string& name);

/// The library that a task comes from, an absolute path; empty: it is built in, or there is none of this name.
std::string library_of(const std::string& task);

/// For a run that learnt a task of `library`: it is loaded as if COHORT_TASKS named it, unless that is set. `who` needs it,
/// for messages. Has to come before the first all_tasks(). Throws Error where it is not there any more.
void use_library(const std::string& library, const std::string& who);

/// Throws Error with the nearest name for an unknown task, and what the task refuses of the settings.
std::unique_ptr<Task> make_task(const std::string& name, const TaskSettings& settings);

}  // namespace cohort::tasks
