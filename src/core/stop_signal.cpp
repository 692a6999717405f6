#include "core/stop_signal.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <time.h>
#include <unistd.h>

namespace cohort {
namespace {

std::atomic<int> wanted{0};
std::atomic<long long> wanted_at{0};  // ms of CLOCK_MONOTONIC
std::atomic<const char*> answer_of{nullptr};
std::atomic<bool> launched{false};
static_assert(std::atomic<long long>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free,
              "a signal handler may touch lock-free atomics only");

constexpr long long kPassedOnWithin = 2000;  // ms: a launcher on a busy machine
constexpr long long kSentTwiceWithin = 200;  // ms: a shell or `timeout` that passes on what the terminal sent already

long long now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<long long>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

void handle(int signal) {
  int none = 0;
  if (wanted.compare_exchange_strong(none, signal)) {
    wanted_at = now_ms();
    write_stop_answer(answer_of);
  } else if (!is_same_wish(wanted_at, now_ms(), launched)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void answer_stop_signals(const char* answer) {
  // Of several ranks, rank 0 speaks for all.
  const char* rank = std::getenv("RANK");
  answer_of = rank == nullptr || std::strcmp(rank, "0") == 0 ? answer : nullptr;
  launched = std::getenv("LOCAL_RANK") != nullptr;
  struct sigaction action {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

int stop_wanted() {
  return wanted;
}

void write_stop_answer(const char* answer) noexcept {
  if (answer == nullptr) return;
  const auto put = [](const char* text) {
    const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
    static_cast<void>(ignored);
  };
  if (::isatty(STDERR_FILENO) == 1) put("\r\x1b[K");
  put(answer);
  put("\n");
}

bool is_same_wish(long long first_ms, long long now_ms, bool launched) noexcept {
  return now_ms - first_ms <= (launched ? kPassedOnWithin : kSentTwiceWithin);
}

}  // namespace cohort
