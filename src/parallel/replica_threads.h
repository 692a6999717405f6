/// One persistent thread per replica of DataParallel.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/array_view.h"

namespace cohort::parallel {

class ReplicaThreads {
 public:
  /// Starts one thread per device. Each sets its device and its number of intra-operation threads once.
  ReplicaThreads(std::vector<DeviceId> devices, int threads_per_replica);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  std::size_t size() const;

  /// Runs `work(replica)` on the first `count` threads with the caller's thread-local state (gradient mode, autocast,
  /// profiler), then, when none of them threw, `after(replica)`: it starts only when every work has ended. Returns when
  /// all have ended. When some threw: throws Error with the message of the lowest replica that did, naming replica and
  /// device. The threads stay usable.
  void run(std::size_t count, const std::function<void(std::size_t)>& work,
           const std::function<void(std::size_t)>& after = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::parallel
