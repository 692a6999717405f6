#include "sim/cpu/threads.h"

#include <system_error>

#include "core/error.h"

namespace cohort::sim {

ThreadTeam::ThreadTeam(int size) {
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
    running_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  start_.notify_all();
  work(0);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

void ThreadTeam::loop(int index) {
  long seen = 0;
  for (;;) {
    const std::function<void(int)>* work;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      work = work_;
    }
    (*work)(index);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --running_;
    }
    done_.notify_one();
  }
}

}  // namespace cohort::sim
