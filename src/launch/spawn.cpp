#include "launch/spawn.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "core/error.h"
#include "launch/guard.h"

namespace cohort::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Runs between vfork and exec: system calls only, no memory of the parent is changed. Writes errno to `failure` and
/// exits when it cannot go on.
[[noreturn]] void become(const SpawnRequest& request, char* const* arguments, char* const* environment,
                         const char* program, int failure, pid_t parent) {
  const auto fail = [&] {
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = ::write(failure, &reason, sizeof reason);
    _exit(127);
  };
  if (request.own_group) setpgid(0, 0);
  if (request.guard >= 0 && !send_to_guard(request.guard, {.what = request.own_group ? 'g' : 'p', .pid = ::getpid()}))
    fail();
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
#else
  (void)parent;
#endif
  const int wanted[3] = {request.standard_input, request.standard_output, request.standard_error};
  for (int fd = 0; fd < 3; ++fd)
    if (wanted[fd] >= 0 && ::dup2(wanted[fd], fd) < 0) fail();
  for (const int inherited : request.inherited) {
    if (inherited < 0) continue;
    const int flags = ::fcntl(inherited, F_GETFD);
    if (flags < 0 || ::fcntl(inherited, F_SETFD, flags & ~FD_CLOEXEC) < 0) fail();
  }
  struct sigaction normal = {};
  normal.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) ::sigaction(signal, &normal, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(program, arguments, environment);
  fail();
  _exit(127);
}

}  // namespace

pid_t spawn(const SpawnRequest& request) {
  COHORT_CHECK(!request.arguments.empty(), "a process needs a name");
  const auto arguments = pointers(request.arguments);
  const auto environment = pointers(request.environment);
  int failure[2];
#if defined(__linux__)
  COHORT_THROW_UNLESS(::pipe2(failure, O_CLOEXEC) == 0, "cannot start {}: {}", request.program, std::strerror(errno));
#else
  COHORT_THROW_UNLESS(::pipe(failure) == 0, "cannot start {}: {}", request.program, std::strerror(errno));
  for (const int fd : failure) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
  // No handler of ours may run in the child, whose memory is the parent's until exec.
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t pid = ::vfork();
#pragma GCC diagnostic pop
  if (pid == 0) become(request, arguments.data(), environment.data(), request.program.c_str(), failure[1], parent);
  const int fork_error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(failure[1]);
  if (pid > 0 && request.own_group) ::setpgid(pid, pid);  // either side may be first
  int reason = 0;
  ssize_t got = 0;
  if (pid > 0) do
      got = ::read(failure[0], &reason, sizeof reason);
    while (got < 0 && errno == EINTR);
  ::close(failure[0]);
  COHORT_THROW_UNLESS(pid > 0, "cannot start {}: {}", request.program, std::strerror(fork_error));
  if (got == static_cast<ssize_t>(sizeof reason)) {
    if (request.guard >= 0) send_to_guard(request.guard, {.what = 'r', .pid = pid});
    ::waitpid(pid, nullptr, 0);
    throw Error(format("cannot execute {}: {}{}", request.program, std::strerror(reason),
                       reason == ENOEXEC ? " (a script needs a first line such as #!/bin/sh)" : ""));
  }
  return pid;
}

std::string find_program_or_empty(const std::string& name) {
  if (name.empty()) return "";
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), F_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::stringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

std::string find_program(const std::string& name) {
  const std::string found = find_program_or_empty(name);
  COHORT_THROW_UNLESS(!found.empty(), "there is no program '{}'{}", name,
                      name.find('/') != std::string::npos ? "" : " in the folders of PATH");
  return found;
}

}  // namespace cohort::launch
