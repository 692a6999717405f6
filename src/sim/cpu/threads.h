/// A fixed set of threads that run one function together, the caller's among them.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cohort::sim {

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

 private:
  void loop(int index);
  void stop();
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int)>* work_ = nullptr;
  long generation_ = 0;
  int running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace cohort::sim
