#include "core/placeholder_file.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort {
namespace {

constexpr std::string_view kLfsVersion = "version https://git-lfs.github.com/spec/";

}  // namespace

bool is_lfs_pointer(std::string_view first_bytes) {
  return first_bytes.starts_with(kLfsVersion);
}

std::string placeholder_fault(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is not waited for
  if (file < 0) return "";
  struct stat status {};
  std::array<char, kLfsVersion.size()> begin{};
  std::size_t read = 0;
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  while (regular && read < begin.size()) {
    const ssize_t n = ::pread(file, begin.data() + read, begin.size() - read, static_cast<off_t>(read));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    read += static_cast<std::size_t>(n);
  }
  ::close(file);
  if (!regular) return "";
  if (status.st_size == 0) return "is empty (0 bytes): copy it again from where it came";
  return is_lfs_pointer({begin.data(), read}) ? kLfsPointer : "";
}

void refuse_placeholder(const std::filesystem::path& path) {
  const std::string fault = placeholder_fault(path);
  COHORT_THROW_UNLESS(fault.empty(), "{} {}", path.string(), fault);
}

}  // namespace cohort
