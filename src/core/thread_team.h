/// A fixed set of threads that run one function together, the caller's among them.
///
///   ThreadTeam team(4);
///   team.run([&](int thread) { step(share_of(thread)); });                     // on all four
///   team.for_each(100, [&](std::int64_t i, int thread) { work(piece[i]); });   // pieces as threads become free
///
/// Whoever waits looks again and again for some microseconds before it sleeps: waking takes longer than a short step of
/// a simulation. Only where every thread has a core to itself.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cohort {

class ThreadTeam {
 public:
  /// `size` counts the caller's thread. Throws Error, saying how many there are, where the system starts fewer.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls work(i) for i in [0, size()) on as many threads, i = 0 on the caller's; returns when all have.
  /// The function must not throw. No allocation.
  void run(const std::function<void(int)>& work);

  /// parallel_for (threads.h) with these threads: body(i, thread) for every i in [0, count), handed out one at a time in
  /// ascending order. When bodies throw, no further index is started, and the exception of the lowest index is rethrown.
  void for_each(std::int64_t count, const std::function<void(std::int64_t i, int thread)>& body);

 private:
  void loop(int index);
  void stop();
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int)>* work_ = nullptr;
  // On lines of their own: both are looked at while the others compute.
  alignas(64) std::atomic<long> generation_{0};
  alignas(64) std::atomic<int> running_{0};
  bool stop_ = false;
  bool looks_ = false;  ///< before it sleeps
  std::vector<std::thread> workers_;
};

}  // namespace cohort
