#include "tasks/run_library.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/config.h"
#include "core/files.h"
#include "core/json_text.h"
#include "tasks/file/task_file.h"
#include "tasks/registry.h"

namespace cohort::tasks {
namespace fs = std::filesystem;
namespace {

/// The run's config.json: a checkpoint lies in RUN/checkpoints. Empty: there is none.
fs::path configuration_of(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::canonical(path, error);
  for (int above = 0; !error && above < 3; ++above, folder = folder.parent_path())
    if (fs::exists(folder / "config.json", error)) return folder / "config.json";
  return {};
}

std::string text_under(const config::Json& section, const char* name) {
  const auto found = section.is_object() ? section.find(name) : section.end();
  return section.is_object() && found != section.end() && found->is_string() ? found->get<std::string>() : "";
}

/// What says the task of a run: the configuration itself of PPO, its `rollout` of other jobs.
config::Json section_of_task(config::Json json) {
  if (!text_under(json, "task").empty() || !json.is_object() || !json.contains("rollout")) return json;
  return json.at("rollout");
}

config::Json json_of(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error) ? try_json<config::Json>(read_file(file)) : config::Json();
}

}  // namespace

void use_library_of_run(const std::string& path, bool own_task) {
  const fs::path file = configuration_of(path);
  if (file.empty()) return;
  const config::Json section = section_of_task(json_of(file));
  use_library(text_under(section, "task_library"), file.parent_path().string());
  use_kept_task(text_under(section, "task"), file.parent_path(), !own_task);
}

TaskOfRun task_of_run(const std::string& path) {
  const fs::path file = configuration_of(path);
  config::Json configuration = json_of(file);
  if (file.empty()) {  // a checkpoint that was copied out of its run, or all of them
    for (const char* inside : {"", "last", "checkpoints/last"})
      if (!configuration.is_object()) configuration = json_of(fs::path(path) / inside / "trainer_state.json");
    configuration = configuration.is_object() ? configuration.value("configuration", config::Json()) : config::Json();
  }
  const config::Json section = section_of_task(std::move(configuration));
  TaskOfRun task{.name = text_under(section, "task"), .engine = text_under(section, "engine"), .settings = {}};
  if (section.is_object() && section.contains("task_settings") && section["task_settings"].is_array())
    for (const config::Json& setting : section["task_settings"])
      if (setting.is_string()) task.settings.push_back(setting.get<std::string>());
  return task;
}

}  // namespace cohort::tasks
