#include "core/standard_descriptors.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort {

void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int null = ::open("/dev/null", O_RDWR);  // inherited by what the program starts, so without O_CLOEXEC
    COHORT_THROW_UNLESS(null >= 0, "descriptor {} is closed, and /dev/null cannot be opened in its place: {}", fd,
                        std::strerror(errno));
    COHORT_CHECK(null == fd, "the lowest free descriptor was {}, but /dev/null got {}", fd, null);
  }
}

}  // namespace cohort
