#include "core/files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

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
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
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

TemporaryFolder::TemporaryFolder(const std::string& prefix, const std::string& or_else) {
  const char* set = std::getenv("TMPDIR");
  const std::string base = set && *set ? set : "/tmp";
  std::string pattern = base + "/" + prefix + "-XXXXXX";
  COHORT_THROW_UNLESS(::mkdtemp(pattern.data()),
                      "cannot make a temporary folder in {}: {}; set TMPDIR to a folder that can be written{}", base,
                      std::strerror(errno), or_else);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(path_, ignored);
}

}  // namespace cohort
