#include "report/append_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::report {
namespace fs = std::filesystem;

AppendFile::AppendFile(const fs::path& path) : path_(path) {
  if (path.has_parent_path()) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    COHORT_THROW_UNLESS(!error, "cannot create the folder {}: {}", path.parent_path().string(), error.message());
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  COHORT_THROW_UNLESS(fd_ >= 0, "cannot open {} for appending: {}", path.string(), std::strerror(errno));
  size_ = ::lseek(fd_, 0, SEEK_END);
}

AppendFile::~AppendFile() {
  ::close(fd_);
}

void AppendFile::append(std::string_view record) {
  const std::size_t size = record.size();
  while (!record.empty()) {
    const ssize_t n = ::write(fd_, record.data(), record.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int reason = errno;
      // Back to the last whole record. Where even that fails there is nothing left to try.
      [[maybe_unused]] const int cut = ::ftruncate(fd_, size_);
      throw Error(format("cannot write {}: {}", path_.string(), std::strerror(reason)));
    }
    record.remove_prefix(static_cast<std::size_t>(n));
  }
  size_ += static_cast<std::int64_t>(size);
}

void AppendFile::sync() {
  // Devices and pipes cannot be synced and say EINVAL.
  COHORT_THROW_UNLESS(::fsync(fd_) == 0 || errno == EINVAL || errno == EROFS, "cannot sync {}: {}", path_.string(),
                      std::strerror(errno));
}

}  // namespace cohort::report
