#include "weights/hub_models.h"

#include <cstdlib>
#include <system_error>

#include "core/error.h"
#include "core/files.h"

namespace cohort::weights {
namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (!variable(name).empty()) return variable(name);
  if (!variable("HF_HOME").empty()) return fs::path(variable("HF_HOME")) / "hub";
  if (!variable("XDG_CACHE_HOME").empty()) return fs::path(variable("XDG_CACHE_HOME")) / "huggingface/hub";
  return fs::path(variable("HOME")) / ".cache/huggingface/hub";
}

/// Empty: there is none.
fs::path cached_snapshot(const fs::path& cache, const std::string& name) {
  std::string folder = "models--" + name;
  for (std::size_t slash; (slash = folder.find('/')) != std::string::npos;) folder.replace(slash, 1, "--");
  std::error_code error;
  if (const fs::path main = cache / folder / "refs/main"; fs::is_regular_file(main, error)) {
    std::string revision = read_file(main);
    revision.erase(revision.find_last_not_of(" \n\r") + 1);
    if (const fs::path snapshot = cache / folder / "snapshots" / revision;
        !revision.empty() && fs::is_directory(snapshot, error))
      return snapshot;
  }
  fs::path newest;
  fs::file_time_type time;
  for (const auto& entry : fs::directory_iterator(cache / folder / "snapshots", error)) {
    std::error_code unreadable;
    const auto written = fs::last_write_time(entry.path(), unreadable);
    if (unreadable || (!newest.empty() && written < time)) continue;
    newest = entry.path();
    time = written;
  }
  return newest;
}

}  // namespace

fs::path find_hub_model(const std::string& flag, const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error)) return name;
  const fs::path cache = cache_folder(), cached = cached_snapshot(cache, name);
  COHORT_THROW_UNLESS(!cached.empty(),
                      "{}={}: there is no such file or folder, and the hub's cache {} does not hold it; where there is "
                      "a network: hf download {}",
                      flag, name, cache.string(), name);
  return cached;
}

}  // namespace cohort::weights
