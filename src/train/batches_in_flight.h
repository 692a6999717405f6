/// Keeps batches alive while a device still copies from their memory: a loader hands that memory to the next batch as
/// soon as the last tensor on it is gone, and a copy from pinned memory returns before it is done.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>

#include <c10/core/Device.h>

#include "parallel/batch.h"

namespace cohort::train {

class BatchesInFlight {
 public:
  explicit BatchesInFlight(c10::Device device);
  ~BatchesInFlight();

  /// To be called when all work that reads the batch has been queued on the device. The CPU works at once: nothing is
  /// kept.
  void hold(parallel::Batch batch);
  /// Waits for the device until at most `keep` batches are held.
  void release(std::size_t keep);

 private:
  struct Held;
  c10::Device device_;
  std::deque<std::unique_ptr<Held>> held_;
};

}  // namespace cohort::train
