#include "core/files.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort {
namespace fs = std::filesystem;
namespace {

class FileDescriptor {
 public:
  FileDescriptor(const fs::path& path, int flags, const char* purpose) : fd_(::open(path.c_str(), flags, 0644)) {
    COHORT_THROW_UNLESS(fd_ >= 0, "cannot open {} {}: {}", path.string(), purpose, std::strerror(errno));
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  /// close() may be the first to report a write error (NFS, quotas).
  int close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

}  // namespace

std::string read_file(const fs::path& path) {
  FileDescriptor file(path, O_RDONLY | O_CLOEXEC, "for reading");
  std::string content;
  std::error_code ignored;
  const auto size = fs::file_size(path, ignored);
  if (!ignored) content.reserve(size);
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    COHORT_THROW_UNLESS(n >= 0, "cannot read {}: {}", path.string(), std::strerror(errno));
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  if (path.has_parent_path()) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    COHORT_THROW_UNLESS(!error, "cannot create the folder {}: {}", path.parent_path().string(), error.message());
  }
  fs::path aside = path;
  aside += format(".tmp{}", ::getpid());
  try {
    FileDescriptor file(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, "for writing");
    for (std::size_t done = 0; done < content.size();) {
      const ssize_t n = ::write(file.get(), content.data() + done, content.size() - done);
      if (n < 0 && errno == EINTR) continue;
      COHORT_THROW_UNLESS(n >= 0, "cannot write {}: {}", path.string(), std::strerror(errno));
      done += static_cast<std::size_t>(n);
    }
    COHORT_THROW_UNLESS(::fsync(file.get()) == 0, "cannot sync {}: {}", path.string(), std::strerror(errno));
    COHORT_THROW_UNLESS(file.close() == 0, "cannot write {}: {}", path.string(), std::strerror(errno));
    fs::rename(aside, path);
  } catch (const fs::filesystem_error& e) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw Error(format("cannot move {} into place: {}", path.string(), e.code().message()));
  } catch (...) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw;
  }
  sync_path(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void sync_path(const fs::path& path) {
  FileDescriptor file(path, O_RDONLY | O_CLOEXEC, "to sync it");
  // Some file systems cannot sync folders and say EINVAL; there is nothing more to do there.
  COHORT_THROW_UNLESS(::fsync(file.get()) == 0 || errno == EINVAL, "cannot sync {}: {}", path.string(),
                      std::strerror(errno));
}

void replace_symlink(const fs::path& target, const fs::path& link) {
  fs::path aside = link;
  aside += format(".tmp{}", ::getpid());
  std::error_code error;
  fs::remove(aside, error);
  fs::create_symlink(target, aside, error);
  if (!error) fs::rename(aside, link, error);
  COHORT_THROW_UNLESS(!error, "cannot set the link {}: {}", link.string(), error.message());
}

}  // namespace cohort
