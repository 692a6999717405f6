#include "data/kept_files.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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

KeptFiles::Turn::Turn(const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);  // not beside the data, which may not be writable
  if (error) return;
  path_ = folder / format("cohort_{}_{}.lock", ::getuid(), name);
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) return;
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  log::debug("waiting for another process that makes {}", name);
  while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

KeptFiles::Turn::~Turn() {
  if (file_ < 0) return;
  // Who waits for a file that is gone gets its turn as well, beside one who makes the file again; both find the answer.
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace cohort::data
