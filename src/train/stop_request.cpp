#include "train/stop_request.h"

#include <atomic>
#include <csignal>
#include <cstdint>

#include <time.h>

namespace cohort::train {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> received{0};
std::atomic<std::int64_t> received_at{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may touch lock-free atomics only");

// A terminal's Ctrl-C reaches every process of the group, and a launcher passes it on once more: what comes so soon
// after the first signal is the same wish.
constexpr std::int64_t kSameWishSeconds = 2;

std::int64_t now_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void handle(int signal) {
  if (!received) {
    received = signal;
    received_at = now_seconds();
    requested = true;
  } else if (now_seconds() - received_at > kSameWishSeconds) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
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
  received = 0;
}

}  // namespace cohort::train
