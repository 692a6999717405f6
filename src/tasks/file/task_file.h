/// A task as a file, YAML or JSON: docs/guide/tasks.md has its keys.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "tasks/file/file_settings.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {

/// Settings of every task of a file, beside those of all tasks of a scene.
struct FileTaskSettings : SceneTaskSettings {
  FileTaskSettings() { end_on_success = false; }
  bool play = false;
  bool commands_by_hand = false;
  bool on_device = true;
  std::vector<FileSetting> of_file;  ///< those of the file's own
};
void describe(config::Fields& fields, FileTaskSettings& settings);

/// Whether a name of a task is that of a file.
bool is_task_file(const std::string& name);

/// What a task is called: a file's name without folder and suffix; another task's own.
std::string task_title(const std::string& name);

/// What the file, or the copy which stands for it, says with what it includes. Throws Error where there is none.
std::string task_file_content(const std::string& path);

/// The task of a file as the registry has others. Throws Error for a file that cannot be read, naming file and line.
TaskEntry task_of_file(const std::string& path);

/// Registers the task of a file that comes with the program, by the file's name without suffix. The file says how long a
/// control step is, so that its settings are known without its model. Nothing in a build that reads no YAML.
void register_library_task(const std::string& file);

/// Throws Error with everything that is wrong in the file, a line each.
std::unique_ptr<Task> make_file_task(const std::string& path, const TaskSettings& settings);

/// Writes the file's task to a folder of a run, with the models that it has with these settings, in `play` and by itself:
/// the run goes on when the files have changed or moved. Nothing for a task that is none of a file.
void keep_task(const std::string& task, const std::filesystem::path& run, const std::vector<std::string>& settings);
/// The task that a run has learnt is the one that it keeps, from now on; said once, also where the file has changed since.
/// only_missing: only where the file is not there any more, or says the same and cannot be used: a file that it includes
/// or a model that it names is gone. run: its folder.
void use_kept_task(const std::string& task, const std::filesystem::path& run, bool only_missing);

}  // namespace cohort::tasks
