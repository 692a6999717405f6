/// A task as a file, YAML or JSON: docs/guide/tasks.md has its keys.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {

/// Settings of every task of a file, beside those of all tasks of a scene.
struct FileTaskSettings : SceneTaskSettings {
  FileTaskSettings() { end_on_success = false; }
  bool play = false;
};
void describe(config::Fields& fields, FileTaskSettings& settings);

/// Whether a name of a task is that of a file.
bool is_task_file(const std::string& name);

/// The task of a file as the registry has others. Throws Error for a file that cannot be read, naming file and line.
TaskEntry task_of_file(const std::string& path);

/// Throws Error with everything that is wrong in the file, a line each.
std::unique_ptr<Task> make_file_task(const std::string& path, const TaskSettings& settings);

}  // namespace cohort::tasks
