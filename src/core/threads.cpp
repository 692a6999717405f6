#include "core/threads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <signal.h>

namespace cohort {
namespace {

/// CPUs' worth of time that the cgroup allows, or infinity.
double cgroup_cpu_limit() {
  double limit = std::numeric_limits<double>::infinity();
  // Inside a container the group's own folder is the mount's root; outside, /proc/self/cgroup names it.
  std::vector<std::string> folders{"/sys/fs/cgroup"};
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::/", 0) == 0 && line.size() > 4) folders.push_back("/sys/fs/cgroup" + line.substr(3));
  }
  for (const std::string& folder : folders) {
    std::ifstream v2(folder + "/cpu.max");
    std::string quota;
    double period = 0;
    if (v2 >> quota >> period && quota != "max" && period > 0) {
      std::istringstream number(quota);
      double value = 0;
      if (number >> value && value > 0) limit = std::min(limit, value / period);
    }
  }
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (v1_quota >> quota && v1_period >> period && quota > 0 && period > 0) limit = std::min(limit, quota / period);
  return limit;
}

}  // namespace

int available_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#ifdef __linux__
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) cores = std::max(1, CPU_COUNT(&mask));
#endif
  const double limit = cgroup_cpu_limit();
  if (limit < cores) cores = std::max(1, static_cast<int>(std::ceil(limit)));
  return cores;
}

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
