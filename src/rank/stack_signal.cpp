#include "rank/stack_signal.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::rank {
namespace {

constexpr int kOffset = 4;  // behind SIGRTMIN; the first ones are the C library's and profilers'

void write_stack(int /*signal*/) {
  const int saved = errno;
  constexpr const char* kTitle = "native stack of the main thread:\n";
  std::array<void*, 64> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  [[maybe_unused]] const ssize_t written = ::write(2, kTitle, std::strlen(kTitle));
  // Without the handler itself and the kernel's frame that called it.
  if (count > 2) ::backtrace_symbols_fd(frames.data() + 2, count - 2, 2);
  errno = saved;
}

}  // namespace

void answer_stack_signal() {
  std::array<void*, 2> frames{};
  ::backtrace(frames.data(), 2);  // its first call loads a library, which a handler may not
  struct sigaction action = {};
  action.sa_handler = write_stack;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGRTMIN + kOffset, &action, nullptr);
}

void ask_for_stack(pid_t pid) {
  // To the main thread: any other may take a signal that is sent to the process.
  ::syscall(SYS_tgkill, pid, pid, SIGRTMIN + kOffset);
}

}  // namespace cohort::rank
