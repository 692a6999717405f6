#include "data/kept_files.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"

namespace cohort::data {
namespace fs = std::filesystem;

namespace {

/// Whether a folder is, or lies in, the folder of a run (report/run_folder.h) that belongs to this user.
bool is_in_own_run(const fs::path& folder) {
  std::error_code error;
  for (fs::path at = fs::weakly_canonical(folder.empty() ? "." : folder, error); !error && at.has_relative_path();
       at = at.parent_path()) {
    struct stat status {};
    if (fs::exists(at / "config.json", error) && fs::exists(at / "training.log", error))
      return ::stat(at.c_str(), &status) == 0 && status.st_uid == ::geteuid();
  }
  return false;
}

/// Empty where the environment names none.
fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fs::path(cache) / "cohort";
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? fs::path(home) / ".cache" / "cohort" : fs::path();
}

}  // namespace

KeptFiles::KeptFiles(const fs::path& data, const std::string& setting) {
  if (setting == "never") return;
  if (setting != "auto") {
    read_from_.push_back(setting);
    write_to_ = setting;
    return;
  }
  std::error_code error;
  const fs::path beside = fs::is_directory(data, error) ? data : data.parent_path(), cache = cache_folder();
  read_from_.push_back(beside);
  if (!cache.empty()) read_from_.push_back(cache);
  write_to_ = is_in_own_run(beside) ? beside : cache;
}

std::optional<KeptFiles::Kept> KeptFiles::read(const std::string& name) const {
  for (const fs::path& folder : read_from_) {
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

void KeptFiles::write(const std::string& name, std::string_view content, const std::string& what) const {
  if (write_to_.empty()) {
    log::debug("{}: not kept, for neither XDG_CACHE_HOME nor HOME names a folder", what);
    return;
  }
  try {
    write_file_atomically(write_to_ / name, content);
    log::info("{}: kept in {}", what, (write_to_ / name).string());
  } catch (const Error& e) {
    log::debug("{}: not kept: {}", what, e.what());
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
