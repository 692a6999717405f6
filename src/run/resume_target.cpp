#include "run/resume_target.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/utf8.h"
#include "weights/checkpoint_folder.h"

namespace cohort::run {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfiguration = "config.json";

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

/// Without links and without a separator at its end.
fs::path without_links(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::canonical(path, error);
  if (error) return path;
  return result.has_filename() ? result : result.parent_path();
}

/// Where `path` is not: the checkpoints or the newest run beside it.
std::string what_is_there(const fs::path& path) {
  const fs::path clean = path.has_filename() ? path : path.parent_path(), beside = clean.parent_path();
  std::string checkpoints;
  const weights::CheckpointFolder folder(beside);
  for (const std::int64_t step : folder.steps())
    checkpoints += (checkpoints.empty() ? "; there are " : ", ") + folder.checkpoint(step).filename().string();
  if (!checkpoints.empty()) return checkpoints;
  return is_there(beside / "latest" / kConfiguration)
             ? format("; the newest run there is resume={}", (beside / "latest").string())
             : "";
}

}  // namespace

ResumeTarget resume_target(const std::string& path) {
  std::error_code no_link;
  // An --output_dir that shows its newest run by links.
  if (fs::is_symlink(fs::path(path) / kConfiguration, no_link))
    return {without_links(fs::path(path) / kConfiguration).parent_path(), ""};
  if (is_there(fs::path(path) / kConfiguration)) return {path, ""};
  const fs::path folder = without_links(path);
  if (is_there(folder / weights::kStateFile)) {
    const fs::path run = folder.parent_path().parent_path();
    COHORT_THROW_UNLESS(
        is_there(run / kConfiguration),
        "resume={}: this checkpoint lies in no run's folder (checkpoints/ beside config.json), so that there "
        "is no run to continue; train.checkpoint.resume={} begins a new run from it",
        path, path);
    return {run, folder.string()};
  }
  if (is_there(folder.parent_path() / kConfiguration) && !weights::CheckpointFolder(folder).steps().empty())
    return {folder.parent_path(), ""};
  std::error_code unreadable;
  COHORT_THROW_UNLESS(is_there(path), "resume={}: there is no such folder{}", path, what_is_there(fs::path(path)));
  COHORT_THROW_UNLESS(!is_there(folder / "latest" / kConfiguration),
                      "resume={}: this folder holds all runs of one name; the newest is resume={}", path,
                      (fs::path(path) / "latest").string());
  COHORT_THROW_UNLESS(!is_there(folder.parent_path() / kConfiguration) || fs::is_directory(folder, unreadable),
                      "resume={}: name the run's folder, resume={}", path, folder.parent_path().string());
  throw Error(format("resume={} is no run: it has no {}", path, kConfiguration));
}

void check_data_of_run(const config::Fields& fields) {
  const config::Json data = fields.to_json().value("data", config::Json::object());
  for (const char* key : {"path", "paths"}) {
    const std::string setting = std::string("data.") + key;
    if (!data.contains(key) || fields.was_overridden(setting)) continue;
    const config::Json& value = data.at(key);
    for (const config::Json& one : value.is_array() ? value : config::Json::array({value})) {
      const std::string path = utf8_to_bytes(one.get<std::string>());
      if (path.empty() || fs::path(path).is_absolute() || path.find("://") != std::string::npos || is_there(path))
        continue;
      std::error_code unknown;
      throw Error(format(
          "{} = {} of the run that is continued: there is no such file in {}. Relative paths hold in the folder where "
          "the run was begun: go on from there, or say where the data are now, {}=PATH",
          setting, path, fs::current_path(unknown).string(), setting));
    }
  }
}

}  // namespace cohort::run
