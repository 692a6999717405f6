#include "tasks/run_library.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/files.h"
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
  const config::Json json = config::Json::parse(read_file(file), nullptr, false);
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

std::pair<std::string, std::vector<std::string>> task_of_run(const std::string& path) {
  const fs::path file = configuration_of(path);
  if (file.empty()) return {};
  const config::Json json = config::Json::parse(read_file(file), nullptr, false);
  const auto of_section = [](const config::Json& section) {
    std::pair<std::string, std::vector<std::string>> found;
    if (!section.is_object() || !section.contains("task") || !section["task"].is_string()) return found;
    found.first = section["task"].get<std::string>();
    if (section.contains("task_settings") && section["task_settings"].is_array())
      for (const config::Json& setting : section["task_settings"])
        if (setting.is_string()) found.second.push_back(setting.get<std::string>());
    return found;
  };
  auto found = of_section(json);
  if (found.first.empty() && json.is_object() && json.contains("rollout")) found = of_section(json.at("rollout"));
  return found;
}

}  // namespace cohort::tasks
