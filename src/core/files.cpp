#include "core/files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/near_file.h"
#include "core/placeholder_file.h"

namespace cohort {
namespace fs = std::filesystem;
namespace {

class FileDescriptor {
 public:
  FileDescriptor(const fs::path& path, int flags, const char* purpose) : fd_(::open(path.c_str(), flags, 0644)) {
    if (fd_ >= 0) return;
    const int reason = errno;
    throw Error(format("cannot open {} {}: {}{}", path.string(), purpose, std::strerror(reason),
                       reason == ENOENT ? near_file(path) : std::string()));
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// The path that a chain of symbolic links leads to, also where nothing is there yet; with a folder before its name.
fs::path behind_links(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  fs::path at = path;
  std::error_code error;
  for (int i = 0; fs::is_symlink(at, error); ++i) {
    COHORT_THROW_UNLESS(i < kMostLinks, "cannot write {}: its symbolic links lead in a circle", path.string());
    const fs::path next = fs::read_symlink(at, error);
    COHORT_THROW_UNLESS(!error, "cannot follow the link {}: {}", at.string(), error.message());
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.has_parent_path() ? at : "." / at;
}

/// A name beside `name` in its folder, no longer than file systems allow.
std::string name_aside(const std::string& name, int attempt) {
  constexpr std::size_t kLongestName = 255;
  const std::string ending = attempt == 0 ? format(".tmp{}", ::getpid()) : format(".tmp{}-{}", ::getpid(), attempt);
  // A name that is too long itself stays so: that is found now, not when the file is put in place.
  return (name.size() <= kLongestName ? name.substr(0, kLongestName - ending.size()) : name) + ending;
}

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
    if (n == 0) {
      COHORT_THROW_UNLESS(!is_lfs_pointer(content), "{} {}", path.string(), kLfsPointer);
      return content;
    }
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

std::optional<std::string> read_file_if_there(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), target_(behind_links(path_)) {
  std::error_code error;
  const fs::file_status status = fs::status(target_, error);
  COHORT_THROW_UNLESS(!fs::is_directory(status), "cannot write {}: it is a folder", path_.string());
  COHORT_THROW_UNLESS(!fs::exists(status) || fs::is_regular_file(status),
                      "cannot write {}: it is a pipe or a device, which cannot be replaced as a whole; name a file",
                      path_.string());
  const fs::path folder = target_.parent_path();
  for (fs::path missing = folder; !missing.empty() && !fs::exists(missing, error); missing = missing.parent_path()) {
    created_.push_back(missing);
    if (missing == missing.parent_path()) break;
  }
  if (!created_.empty()) fs::create_directories(folder, error);
  if (!created_.empty() && error) {
    remove();
    throw Error(format("cannot create the folder {}: {}", folder.string(), error.message()));
  }
  // Another write to the same file, or what a killed process left, may hold a name.
  for (int attempt = 0; fd_ < 0; ++attempt) {
    aside_ = folder / name_aside(target_.filename().string(), attempt);
    fd_ = ::open(aside_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ >= 0 || errno == EEXIST) continue;
    const int reason = errno;
    aside_.clear();
    remove();
    throw Error(format("cannot write {}: {}", path_.string(), std::strerror(reason)));
  }
}

AtomicFile::~AtomicFile() {
  remove();
}

void AtomicFile::remove() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  std::error_code ignored;
  if (!aside_.empty()) fs::remove(aside_, ignored);
  for (const fs::path& folder : created_) fs::remove(folder, ignored);  // unless somebody else put something into it
}

void AtomicFile::write(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    COHORT_THROW_UNLESS(n >= 0, "cannot write {}: {}", path_.string(), std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::read(std::uint64_t offset, std::span<char> to) {
  while (!to.empty()) {
    const ssize_t n = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    COHORT_THROW_UNLESS(n > 0, "cannot read back {}: {}", path_.string(),
                        n < 0 ? std::strerror(errno) : "somebody else cut it off");
    to = to.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::resize(std::uint64_t bytes) {
  COHORT_THROW_UNLESS(::ftruncate(fd_, static_cast<off_t>(bytes)) == 0, "cannot write {}: {}", path_.string(),
                      std::strerror(errno));
}

void AtomicFile::reserve(std::uint64_t bytes) {
#if defined(__linux__)
  int result = 0;
  do {
    result = bytes > 0 ? ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) : 0;
  } while (result != 0 && errno == EINTR);
  COHORT_THROW_UNLESS(result == 0 || errno == EOPNOTSUPP || errno == ENOSYS, "cannot write {}: {} of room: {}",
                      path_.string(), format_bytes(static_cast<double>(bytes)), std::strerror(errno));
#else
  (void)bytes;
#endif
}

std::uint64_t AtomicFile::size() const {
  struct stat status {};
  COHORT_THROW_UNLESS(::fstat(fd_, &status) == 0, "cannot ask for the size of {}: {}", path_.string(),
                      std::strerror(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

std::uintmax_t AtomicFile::room() const {
  std::error_code unknown;
  return fs::space(target_.parent_path(), unknown).available;  // -1 where unknown
}

void AtomicFile::commit() {
  COHORT_THROW_UNLESS(::fsync(fd_) == 0, "cannot sync {}: {}", path_.string(), std::strerror(errno));
  // close() may be the first to report a write error (NFS, quotas).
  COHORT_THROW_UNLESS(::close(std::exchange(fd_, -1)) == 0, "cannot write {}: {}", path_.string(),
                      std::strerror(errno));
  std::error_code error;
  fs::rename(aside_, target_, error);
  COHORT_THROW_UNLESS(!error, "cannot move {} into place: {}", path_.string(), error.message());
  aside_.clear();
  created_.clear();
  sync_path(target_.parent_path());
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(0, content);
  file.commit();
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

namespace {

fs::path temporary_base() {
  const char* set = std::getenv("TMPDIR");
  return set && *set ? set : "/tmp";
}

/// A folder of this user's, open and locked. -1 with errno otherwise: EWOULDBLOCK says that another process has the
/// lock or has removed the folder.
int lock_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) errno = EWOULDBLOCK;
    return -1;
  }
  struct stat opened {
  }, named{};
  int reason = 0;
  if (::fstat(fd, &opened) != 0 || ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    reason = errno;
  } else if (opened.st_uid != ::geteuid()) {
    reason = EACCES;
  } else if (::lstat(folder.c_str(), &named) != 0 || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) {
    reason = EWOULDBLOCK;
  }
  if (reason == 0) return fd;
  ::close(fd);
  errno = reason;
  return -1;
}

/// What mkdtemp fills in.
constexpr std::string_view kRandomPart = "XXXXXX";

/// Removes the folders of this prefix that no process has locked.
void remove_left_behind(const std::string& prefix) {
  std::error_code error;
  for (fs::directory_iterator at(temporary_base(), error), end; !error && at != end; at.increment(error)) {
    const fs::path folder = at->path();
    const std::string name = folder.filename().string();
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kRandomPart.size()) continue;
    const int lock = lock_folder(folder);
    if (lock < 0) continue;
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    ::close(lock);
  }
}

}  // namespace

fs::path make_folder_in_tmp(const std::string& prefix, const std::string& or_else) {
  const std::string base = temporary_base().string();
  std::string pattern = format("{}/{}-{}", base, prefix, kRandomPart);
  COHORT_THROW_UNLESS(::mkdtemp(pattern.data()),
                      "cannot make a temporary folder in {}: {}; set TMPDIR to a folder that can be written{}", base,
                      std::strerror(errno), or_else);
  return pattern;
}

TemporaryFolder::TemporaryFolder(const std::string& prefix, const std::string& or_else) {
  // Several machines may share the folder by a network's file system, whose locks need not reach the others.
  char machine[64] = "";
  ::gethostname(machine, sizeof machine - 1);
  const std::string whole = format("{}-{}", prefix, machine);
  remove_left_behind(whole + "-");
  // Another process may take a folder for left behind before it is locked: then it is gone, and a new one is made.
  constexpr int kMostAttempts = 100;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    path_ = make_folder_in_tmp(whole, or_else);
    lock_ = lock_folder(path_);
    if (lock_ >= 0 || errno != EWOULDBLOCK) return;
  }
  throw Error(format("cannot make a temporary folder {}: another process removes it each time; set TMPDIR to another{}",
                     path_.string(), or_else));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace cohort
