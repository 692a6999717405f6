#include "train/resume_target.h"

#include "core/error.h"
#include "policy/checkpoint_folder.h"

namespace cohort::train {
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

}  // namespace

ResumeTarget resume_target(const std::string& path) {
  if (is_there(fs::path(path) / kConfiguration)) return {path, ""};
  const fs::path folder = without_links(path);
  if (is_there(folder / policy::kStateFile)) {
    const fs::path run = folder.parent_path().parent_path();
    COHORT_THROW_UNLESS(
        is_there(run / kConfiguration),
        "resume={}: this checkpoint lies in no run's folder (checkpoints/ beside config.json), so that there "
        "is no run to continue; train.checkpoint.resume={} begins a new run from it",
        path, path);
    return {run, folder.string()};
  }
  if (is_there(folder.parent_path() / kConfiguration) && !policy::CheckpointFolder(folder).steps().empty())
    return {folder.parent_path(), ""};
  return {path, ""};
}

}  // namespace cohort::train
