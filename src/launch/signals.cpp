#include "launch/signals.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::launch {
namespace {

std::atomic<int> pipe_of_handler{-1};

void on_signal(int signal) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = ::write(pipe_of_handler.load(), &byte, 1);
  errno = saved;
}

}  // namespace

SignalPipe::SignalPipe(const std::vector<int>& signals) {
  COHORT_CHECK(pipe_of_handler.load() < 0, "there is a signal pipe already");
  std::array<int, 2> ends{};
  COHORT_THROW_UNLESS(::pipe(ends.data()) == 0, "cannot make a pipe: {}", std::strerror(errno));
  for (const int fd : ends) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  read_ = ends[0];
  write_ = ends[1];
  pipe_of_handler = write_;
  const auto install = [&](int signal, void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = signal == SIGCHLD ? SA_NOCLDSTOP : 0;
    Previous before{signal, {}};
    ::sigaction(signal, nullptr, &before.action);
    // nohup and background jobs of plain shells start a process with signals ignored: they stay so.
    if (before.action.sa_handler == SIG_IGN && signal != SIGCHLD && signal != SIGPIPE) return;
    ::sigaction(signal, &action, nullptr);
    previous_.push_back(before);
  };
  for (const int signal : signals) install(signal, on_signal);
  install(SIGPIPE, SIG_IGN);
}

SignalPipe::~SignalPipe() {
  for (const Previous& before : previous_) ::sigaction(before.signal, &before.action, nullptr);
  pipe_of_handler = -1;
  ::close(read_);
  ::close(write_);
}

std::vector<int> SignalPipe::take() {
  std::vector<int> signals;
  std::array<unsigned char, 64> buffer{};
  for (;;) {
    const ssize_t n = ::read(read_, buffer.data(), buffer.size());
    if (n <= 0) return signals;
    signals.insert(signals.end(), buffer.begin(), buffer.begin() + n);
  }
}

bool asks_to_stop(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

bool is_notice(int signal) {
  return signal == SIGUSR1 || signal == SIGUSR2;
}

}  // namespace cohort::launch
