#include "tasks/run_library.h"

#include <filesystem>
#include <nlohmann/json.hpp>

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

}  // namespace

void use_library_of_run(const std::string& path, bool own_task) {
  const fs::path file = configuration_of(path);
  if (file.empty()) return;
  const config::Json json = try_json<config::Json>(read_file(file));
  const auto text_of = [](const config::Json& section) {
    const bool says = section.is_object() && section.contains("task_library") && section["task_library"].is_string();
    return says ? section["task_library"].get<std::string>() : std::string();
  };
  std::string library = text_of(json);
  if (library.empty() && json.is_object() && json.contains("rollout")) library = text_of(json.at("rollout"));
  use_library(library, file.parent_path().string());
  if (json.is_object() && json.contains("task") && json["task"].is_string())
    use_kept_task(json["task"].get<std::string>(), file.parent_path(), !own_task);
}

TaskOfRun task_of_run(const std::string& path) {
  const fs::path file = configuration_of(path);
  if (file.empty()) return {};
  const config::Json json = try_json<config::Json>(read_file(file));
  const auto of_section = [](const config::Json& section) {
    TaskOfRun found;
    const auto text_of = [&](const char* name) {
      return section.contains(name) && section[name].is_string() ? section[name].get<std::string>() : std::string();
    };
    if (!section.is_object()) return found;
    found.name = text_of("task");
    found.engine = text_of("engine");
    if (section.contains("task_settings") && section["task_settings"].is_array())
      for (const config::Json& setting : section["task_settings"])
        if (setting.is_string()) found.settings.push_back(setting.get<std::string>());
    return found;
  };
  const TaskOfRun found = of_section(json);
  return found.name.empty() && json.is_object() && json.contains("rollout") ? of_section(json.at("rollout")) : found;
}

}  // namespace cohort::tasks
