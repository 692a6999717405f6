#include "core/standard_descriptors.h"

#include <array>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cohort {
namespace {

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Closes these descriptors and calls the function; in a process of its own, which returns what it found wrong, 0 for
/// nothing.
int after_closing(const std::set<int>& closed) {
  std::array<struct stat, 3> before{};
  for (int fd = 0; fd <= 2; ++fd) {
    if (closed.contains(fd))
      ::close(fd);
    else if (::fstat(fd, &before[static_cast<std::size_t>(fd)]) != 0)
      return 1;
  }
  open_standard_descriptors();
  struct stat null {};
  if (::stat("/dev/null", &null) != 0) return 2;
  for (int fd = 0; fd <= 2; ++fd) {
    struct stat now {};
    if (::fstat(fd, &now) != 0) return 3;
    if (!same_file(now, closed.contains(fd) ? null : before[static_cast<std::size_t>(fd)])) return 4;
    if (closed.contains(fd) && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) return 5;
    char byte = 0;
    if (fd == 0 && closed.contains(fd) && ::read(fd, &byte, 1) != 0) return 6;
    if (fd > 0 && closed.contains(fd) && ::write(fd, &byte, 1) != 1) return 7;
  }
  return ::open("/dev/null", O_RDONLY) > 2 ? 0 : 8;
}

TEST(StandardDescriptors, ClosedOnesBecomeDevNullAndTheOthersStay) {
  for (const std::set<int>& closed :
       {std::set<int>{}, std::set<int>{0}, std::set<int>{1}, std::set<int>{0, 2}, std::set<int>{0, 1, 2}}) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(after_closing(closed));
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << closed.size() << " closed";
  }
}

}  // namespace
}  // namespace cohort
