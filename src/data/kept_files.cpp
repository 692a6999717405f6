#include "data/kept_files.h"

#include <cstdlib>
#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"

namespace cohort::data {
namespace fs = std::filesystem;

KeptFiles::KeptFiles(const fs::path& data, const std::string& setting) {
  if (setting == "never") return;
  if (setting != "auto") {
    folders_.push_back(setting);
    return;
  }
  std::error_code error;
  folders_.push_back(fs::is_directory(data, error) ? data : data.parent_path());
  if (const char* cache = std::getenv("XDG_CACHE_HOME"))
    folders_.push_back(fs::path(cache) / "cohort");
  else if (const char* home = std::getenv("HOME"))
    folders_.push_back(fs::path(home) / ".cache" / "cohort");
}

std::optional<KeptFiles::Kept> KeptFiles::read(const std::string& name) const {
  for (const fs::path& folder : folders_) {
    std::error_code error;
    if (!fs::is_regular_file(folder / name, error)) continue;
    try {
      return Kept{read_file(folder / name), folder / name};
    } catch (const Error& e) {
      log::debug("{}", e.what());
    }
  }
  return std::nullopt;
}

void KeptFiles::write(const std::string& name, std::string_view content) const {
  for (const fs::path& folder : folders_) {
    try {
      write_file_atomically(folder / name, content);
      return;
    } catch (const Error& e) {
      log::debug("{} was not kept in {}: {}", name, folder.string(), e.what());
    }
  }
}

}  // namespace cohort::data
