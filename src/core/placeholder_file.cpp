#include "core/placeholder_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort {
namespace {

constexpr std::string_view kLfsVersion = "version https://git-lfs.github.com/spec/";

/// Whether a text begins as a page of a site does: what a download saves where one had to sign in, or took a link to a
/// page about the file for the file.
bool is_web_page(std::string_view first_bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (first_bytes.starts_with(kByteOrderMark)) first_bytes.remove_prefix(kByteOrderMark.size());
  first_bytes.remove_prefix(std::min(first_bytes.find_first_not_of(" \t\r\n"), first_bytes.size()));
  return std::ranges::any_of(std::array<std::string_view, 2>{"<!doctype html", "<html"}, [&](std::string_view front) {
    return first_bytes.size() >= front.size() &&
           std::equal(front.begin(), front.end(), first_bytes.begin(), [](char wanted, char found) {
             return wanted == static_cast<char>(std::tolower(static_cast<unsigned char>(found)));
           });
  });
}

}  // namespace

bool is_lfs_pointer(std::string_view first_bytes) {
  return first_bytes.starts_with(kLfsVersion);
}

std::string stand_in_fault(std::string_view first_bytes) {
  if (is_lfs_pointer(first_bytes)) return kLfsPointer;
  return is_web_page(first_bytes)
             ? "is a web page, not the file itself: download it again, by the link to the file (of a "
               "site where one signs in, by that site's own program)"
             : "";
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
  return stand_in_fault({begin.data(), read});
}

void refuse_placeholder(const std::filesystem::path& path) {
  const std::string fault = placeholder_fault(path);
  COHORT_THROW_UNLESS(fault.empty(), "{} {}", path.string(), fault);
}

}  // namespace cohort
