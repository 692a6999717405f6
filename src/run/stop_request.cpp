#include "run/stop_request.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include <time.h>

#include "core/stop_signal.h"

namespace cohort::run {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> received{0};
std::atomic<bool> asked{false};         // by SIGTERM or SIGINT
std::atomic<std::int64_t> asked_at{0};  // ms
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may touch lock-free atomics only");

std::atomic<const char*> answer_of{nullptr};
std::atomic<bool> launched{false};

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

/// What schedulers announce the end of a job's time with. It may be followed by SIGTERM: the first of those is still
/// the same wish, and none of these insists.
bool is_notice(int signal) {
  return signal == SIGUSR1 || signal == SIGUSR2;
}

void handle(int signal) {
  if (!received) {
    received = signal;
    requested = true;
  }
  if (is_notice(signal)) return;
  if (!asked) {
    asked = true;
    asked_at = now_ms();
    write_stop_answer(answer_of);
  } else if (!is_same_wish(asked_at, now_ms(), launched)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void install_stop_signals(const char* answer) {
  answer_of = answer;
  launched = std::getenv("LOCAL_RANK") != nullptr;
  struct sigaction action {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() {
  return requested;
}
int stop_signal() {
  return received;
}
void request_stop() {
  requested = true;
}

void clear_stop_request() {
  requested = false;
  asked = false;
  received = 0;
}

}  // namespace cohort::run
