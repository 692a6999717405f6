#include "core/thread_team.h"

#include <chrono>
#include <exception>
#include <limits>
#include <system_error>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/threads.h"

namespace cohort {
namespace {

// A thread that sleeps wakes up 5 to 50 us after it was called.
constexpr std::chrono::microseconds kLook{50};
constexpr int kLooksPerTime = 64;  // between two looks at the clock

void pause_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether it comes true within kLook.
template <class Condition>
bool comes_soon(const Condition& condition) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kLooksPerTime; ++i) {
      if (condition()) return true;
      pause_a_moment();
    }
  } while (std::chrono::steady_clock::now() - begin < kLook);
  return condition();
}

}  // namespace

ThreadTeam::ThreadTeam(int size) : looks_(size <= available_cores()) {
  try {
    for (int i = 1; i < size; ++i) workers_.emplace_back([this, i] { loop(i); });
  } catch (const std::system_error& e) {
    const int started = this->size();
    stop();
    throw Error(
        format("{} threads were asked for, this process gets {}: {}. Ask for fewer (--threads), or raise its "
               "limits (ulimit -u, the group's pids.max)",
               size, started, e.code().message()));
  }
}

ThreadTeam::~ThreadTeam() {
  stop();
}

void ThreadTeam::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    generation_.fetch_add(1, std::memory_order_release);
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  if (workers_.empty()) {
    work(0);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_ = &work;
    running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
  }
  start_.notify_all();
  work(0);
  const auto all_are_done = [this] { return running_.load(std::memory_order_acquire) == 0; };
  if (looks_ && comes_soon(all_are_done)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, all_are_done);
}

void ThreadTeam::for_each(std::int64_t count, const std::function<void(std::int64_t i, int thread)>& body) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr first_error;
  std::int64_t first_error_index = std::numeric_limits<std::int64_t>::max();
  const auto work = [&](int thread) {
    for (std::int64_t i = next.fetch_add(1, std::memory_order_relaxed); i < count;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      try {
        body(i, thread);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (i < first_error_index) first_error_index = i, first_error = std::current_exception();
        next.store(count, std::memory_order_relaxed);
      }
    }
  };
  if (count == 1)
    work(0);  // nobody else need wake up
  else if (count > 1)
    run(work);
  if (first_error) std::rethrow_exception(first_error);
}

void ThreadTeam::loop(int index) {
  block_signals_in_this_thread();
  long seen = 0;
  const auto is_called = [&] { return generation_.load(std::memory_order_acquire) != seen; };
  for (;;) {
    if (!looks_ || !comes_soon(is_called)) {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, is_called);
    }
    // What was written before generation_ is seen now; the next call comes only when this one is done.
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    (*work_)(index);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    // The caller either looks, or holds the lock until it sleeps.
    { const std::lock_guard<std::mutex> lock(mutex_); }
    done_.notify_one();
  }
}

}  // namespace cohort
