#include "parallel/replica_threads.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <torch/types.h>

#include "dist/cuda_plugin.h"

namespace cohort::parallel {
namespace {

std::string message_of(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

struct ReplicaThreads::Impl {
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<DeviceId> devices;
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t task = 0;       // number of the task that is running or was the last
  std::size_t taking_part = 0;  // threads of this task
  std::size_t worked = 0;       // that have ended work()
  std::size_t ended = 0;        // that have ended after()
  bool stop = false;
  const std::function<void(std::size_t)>* work = nullptr;
  const std::function<void(std::size_t)>* after = nullptr;
  std::optional<at::ThreadLocalState> state;
  std::vector<std::exception_ptr> problems;
  bool failed = false;

  void set_up(std::size_t replica, int intra_threads) {
    // OpenMP's count is the calling thread's own. A thread's first question after it sets it to LibTorch's global
    // number, which would undo ours; hence ask first.
    (void)at::get_num_threads();
    at::set_num_threads(intra_threads);
    if (devices[replica].kind == DeviceKind::kCuda) dist::load_cuda_plugin().set_device(devices[replica].index);
  }

  void one(const std::function<void(std::size_t)>& function, std::size_t replica) {
    if (!function) return;
    try {
      const at::ThreadLocalStateGuard guard(*state);
      function(replica);
    } catch (...) {
      const std::lock_guard lock(mutex);
      problems[replica] = std::current_exception();
      failed = true;
    }
  }

  void loop(std::size_t replica) {
    std::unique_lock lock(mutex);
    for (std::uint64_t done = 0;;) {
      changed.wait(lock, [&] { return stop || task != done; });
      if (stop) return;
      done = task;
      if (replica >= taking_part) continue;
      lock.unlock();
      one(*work, replica);
      lock.lock();
      if (++worked == taking_part) {
        changed.notify_all();
      } else {
        changed.wait(lock, [&] { return worked == taking_part; });
      }
      if (!failed) {
        lock.unlock();
        one(*after, replica);
        lock.lock();
      }
      if (++ended == taking_part) changed.notify_all();
    }
  }
};

ReplicaThreads::ReplicaThreads(std::vector<DeviceId> devices, int threads_per_replica)
    : impl_(std::make_unique<Impl>()) {
  impl_->devices = std::move(devices);
  // LibTorch gives threads that appear later (a loader's, say) the number that was set last by anybody.
  const int callers = at::get_num_threads();
  for (std::size_t replica = 0; replica < impl_->devices.size(); ++replica)
    impl_->threads.emplace_back([this, replica] { impl_->loop(replica); });
  try {
    run(size(), [&](std::size_t replica) { impl_->set_up(replica, threads_per_replica); });
  } catch (...) {
    at::set_num_threads(callers);
    impl_.reset();
    throw;
  }
  at::set_num_threads(callers);
}

ReplicaThreads::~ReplicaThreads() = default;

std::size_t ReplicaThreads::size() const {
  return impl_->devices.size();
}

void ReplicaThreads::run(std::size_t count, const std::function<void(std::size_t)>& work,
                         const std::function<void(std::size_t)>& after) {
  COHORT_CHECK(count >= 1 && count <= size(), "{} of {} replicas", count, size());
  Impl& self = *impl_;
  std::unique_lock lock(self.mutex);
  self.problems.assign(size(), nullptr);
  self.failed = false;
  self.state.emplace();
  self.work = &work;
  self.after = &after;
  self.taking_part = count;
  self.worked = self.ended = 0;
  ++self.task;
  self.changed.notify_all();
  self.changed.wait(lock, [&] { return self.ended == count; });
  self.state.reset();
  if (!self.failed) return;
  std::string others;
  const std::exception_ptr* first = nullptr;
  std::size_t first_replica = 0;
  for (std::size_t replica = 0; replica < size(); ++replica) {
    if (!self.problems[replica]) continue;
    if (first == nullptr) {
      first = &self.problems[replica];
      first_replica = replica;
    } else {
      others += format("{}{}", others.empty() ? "; also failed: replica " : ", ", replica);
    }
  }
  throw Error(format("replica {} ({}): {}{}", first_replica, to_string(self.devices[first_replica]), message_of(*first),
                     others));
}

}  // namespace cohort::parallel
