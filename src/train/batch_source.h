/// Where the training loop gets its batches from.
#pragma once
#include <cstdint>
#include <optional>

#include "parallel/batch.h"

namespace cohort::train {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Samples of the data set, over all processes, padding not counted.
  virtual std::int64_t samples_per_epoch() const = 0;
  /// Batches that every process yields in a whole epoch; the same on all of them.
  virtual std::int64_t batches_per_epoch() const = 0;

  /// Starts an epoch after its first `first_sample` samples, counted over all processes: what a run that stopped there,
  /// on any number of processes, has already seen. Returns the batches that follow for every process: the same number
  /// on all of them, 0 when none is left.
  virtual std::int64_t start_epoch(std::int64_t epoch, std::int64_t first_sample) = 0;

  /// The next batch of this process, or nothing at the end of the epoch. Its tensors may be views of memory that is
  /// reused once they are gone.
  virtual std::optional<parallel::Batch> next() = 0;

  /// Seconds that next() has waited for data so far.
  virtual double wait_seconds() const = 0;
};

}  // namespace cohort::train
