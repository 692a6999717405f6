#include "core/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>

namespace cohort {

void set_thread_name(const std::string& name) {
  const std::string shortened = name.substr(0, 15);
#ifdef __APPLE__
  ::pthread_setname_np(shortened.c_str());
#else
  ::pthread_setname_np(::pthread_self(), shortened.c_str());
#endif
}

void block_signals_in_this_thread() {
  sigset_t all;
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  if (count <= 0) return;
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr first_error;
  std::int64_t first_error_index = std::numeric_limits<std::int64_t>::max();
  const auto work = [&] {
    for (;;) {
      const std::int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      try {
        body(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (i < first_error_index) {
          first_error_index = i;
          first_error = std::current_exception();
        }
        next.store(count, std::memory_order_relaxed);
      }
    }
  };
  std::vector<std::thread> helpers;
  const std::int64_t wanted = std::min<std::int64_t>(threads, count) - 1;
  for (std::int64_t t = 0; t < wanted; ++t) {
    try {
      helpers.emplace_back([&work] {
        block_signals_in_this_thread();
        work();
      });
    } catch (const std::system_error&) {
      break;  // no more threads to be had: those that run do all the work
    }
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace cohort
