#include "launch/guard.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "core/error.h"

namespace cohort::launch {
namespace {

[[noreturn]] void watch(int agent) {
  setsid();
  for (int signal = 1; signal < NSIG; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP && signal != SIGCHLD) ::signal(signal, SIG_IGN);
  // Holding the agent's descriptors would keep pipes and sockets open that must close with it.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  const long most = ::sysconf(_SC_OPEN_MAX);
#if defined(__linux__)
  prctl(PR_SET_NAME, "cohort-guard");
  if (::dup2(agent, 3) == 3 && ::close_range(4, ~0u, 0) == 0)
    agent = 3;
  else
#endif
    for (int fd = 3; fd < (most > 0 && most < 65536 ? most : 65536); ++fd)
      if (fd != agent) ::close(fd);
  std::map<pid_t, char> watched;
  GuardMessage message{};
  for (;;) {
    const ssize_t n = ::read(agent, &message, sizeof message);
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(sizeof message)) break;
    if (message.what == 'q') _exit(0);
    if (message.what == 'r')
      watched.erase(message.pid);
    else
      watched[message.pid] = message.what;
  }
  for (const auto& [pid, what] : watched) ::kill(what == 'g' ? -pid : pid, SIGKILL);
  _exit(0);
}

}  // namespace

OrphanGuard::OrphanGuard() {
  // Sockets: a message to a guard that somebody has killed must not end the agent by SIGPIPE, or a rank before it starts.
  std::array<int, 2> ends{};
  COHORT_THROW_UNLESS(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "cannot start the guard: {}",
                      std::strerror(errno));
  for (const int fd : ends) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  guard_ = ::fork();
  if (guard_ == 0) {
    ::close(ends[1]);
    watch(ends[0]);
  }
  const int reason = errno;
  ::close(ends[0]);
  socket_ = ends[1];
  if (guard_ < 0) {
    ::close(socket_);
    throw Error(format("cannot start the guard: {}", std::strerror(reason)));
  }
}

OrphanGuard::~OrphanGuard() {
  tell('q', 0);
  ::close(socket_);
  while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void OrphanGuard::remove(pid_t pid) {
  tell('r', pid);
}

void OrphanGuard::tell(char what, pid_t pid) {
  send_to_guard(socket_, {.what = what, .pid = pid});
}

bool send_to_guard(int descriptor, const GuardMessage& message) {
  ssize_t sent = 0;
  do sent = ::send(descriptor, &message, sizeof message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent >= 0 || errno == EPIPE || errno == ECONNRESET;
}

}  // namespace cohort::launch
