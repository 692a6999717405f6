/// Where a training loop takes its batches from.
#pragma once
#include <cstdint>
#include <optional>

#include "parallel/batch.h"

namespace cohort::train {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Samples of a whole epoch, all processes together.
  virtual std::int64_t samples_per_epoch() const = 0;
  /// Batches of a whole epoch for this process; the same number on every rank.
  virtual std::int64_t batches_per_epoch() const = 0;

  /// Starts an epoch (from 0) behind the first `first_sample` samples of its global order, which all processes together
  /// have consumed already. Returns how many batches follow for this process: the same number on every rank, 0 when
  /// none are left.
  virtual std::int64_t start_epoch(std::int64_t epoch, std::int64_t first_sample) = 0;

  /// The next batch of this process, with sample_ids; nothing at the end of the epoch.
  virtual std::optional<parallel::Batch> next() = 0;
};

}  // namespace cohort::train
