#include "report/result_links.h"

#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCheckpoint = "checkpoint-";

/// Relative to the folder, so that both can be moved together.
void link_to(const fs::path& folder, const fs::path& target) {
  std::error_code error;
  const fs::path link = folder / target.filename();
  const fs::path relative = fs::relative(target.parent_path(), folder, error) / target.filename();
  if (error || fs::read_symlink(link, error) == relative) return;
  try {
    replace_symlink(relative, link);
  } catch (const Error& e) {
    log::warning("{}", e.what());  // a file system without links, or something of the user's of that name
  }
}

}  // namespace

void link_results(const fs::path& folder, const fs::path& run) {
  for (const char* name : {"training.log", "config.json", "metrics.jsonl", "report.html", "charts", "checkpoints"})
    link_to(folder, run / name);
  link_checkpoints(folder, run / "checkpoints");
}

void link_checkpoints(const fs::path& folder, const fs::path& checkpoints) {
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code unreadable;
    if (name.starts_with(kCheckpoint) && entry.is_symlink(unreadable) && !fs::exists(checkpoints / name, unreadable))
      gone.push_back(entry.path());
  }
  for (const fs::path& link : gone) fs::remove(link, error);
  for (const auto& entry : fs::directory_iterator(checkpoints, error))
    if (entry.path().filename().string().starts_with(kCheckpoint)) link_to(folder, entry.path());
}

}  // namespace cohort::report
