#include "core/near_file.h"

#include <system_error>
#include <vector>

#include "core/config.h"
#include "core/format.h"

namespace cohort {
namespace fs = std::filesystem;

std::string near_file(const fs::path& path) {
  constexpr std::size_t kMostNames = 10000;  // of a folder that is read for a hint
  std::error_code error;
  if (path.empty() || fs::exists(path, error)) return "";
  fs::path missing = path;
  if (!missing.has_filename()) missing = missing.parent_path();
  // The first part of the path that is not there.
  while (missing.has_parent_path() && missing.parent_path() != missing && !fs::exists(missing.parent_path(), error))
    missing = missing.parent_path();
  const fs::path folder = missing.parent_path();
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error))
    if (names.size() < kMostNames) names.push_back(entry->path().filename().string());
  const std::string near = config::nearest(missing.filename().string(), names);
  return near.empty() ? "" : format("; did you mean {}?", (folder / near).string());
}

}  // namespace cohort
