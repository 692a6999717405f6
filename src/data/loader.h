/// Batches from a data set, prepared by persistent threads into reused buffers under a fixed memory budget. The order
/// of the batches is that of the indices, whatever the number of threads; in the steady state nothing is allocated.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/allocator.h"
#include "core/array_view.h"
#include "data/dataset.h"

namespace cohort::config {
class Fields;
}

namespace cohort::data {

struct LoaderSettings {
  std::int64_t batch_size = 32;  ///< samples per batch of this process; set by train.batch_size
  int workers = 2;               ///< threads; 0: batches are prepared by the thread that asks for them
  int prefetch_factor = 2;       ///< batches that each worker prepares ahead
  /// Bytes that all batches together may hold, those that the caller still holds included. Fewer batches are prepared
  /// ahead where it does not suffice.
  std::int64_t memory_budget_bytes = 256ll << 20;
  bool drop_last = false;  ///< leave out a last batch that is not full
  /// Torch's names for what is always so here; false is refused.
  bool pin_memory = true;
  bool persistent_workers = true;
};

/// Binds workers, prefetch_factor, memory_budget_bytes, pin_memory and persistent_workers.
void describe(config::Fields& fields, LoaderSettings& settings);

struct LoaderStatistics {
  std::int64_t batches = 0;     ///< handed out since construction
  double wait_seconds = 0;      ///< that next() waited for data
  std::int64_t bytes_held = 0;  ///< by all buffers: fixed at construction
  std::int64_t buffers = 0;
};

namespace loader_detail {
class Engine;
struct Buffer;
}  // namespace loader_detail

/// A batch on loan. Its memory goes back to the loader when the lease is destroyed; the lease may outlive the loader,
/// but not the allocator.
class LoadedBatch {
 public:
  LoadedBatch() = default;
  LoadedBatch(LoadedBatch&& other) noexcept;
  LoadedBatch& operator=(LoadedBatch&& other) noexcept;
  ~LoadedBatch();

  /// False at the end of the epoch.
  explicit operator bool() const { return buffer_ != nullptr; }
  /// One view per field of the data set, (n_sample, sample_shape...), contiguous.
  std::span<const ArrayView> fields() const;
  /// (n_sample): see EpochShare::sample_ids.
  std::span<const std::int64_t> sample_ids() const;
  std::int64_t size() const { return static_cast<std::int64_t>(sample_ids().size()); }

 private:
  friend class loader_detail::Engine;
  std::shared_ptr<loader_detail::Engine> engine_;
  loader_detail::Buffer* buffer_ = nullptr;
};

class Loader {
 public:
  /// `allocator` must outlive the loader and every lease. Throws Error when the budget does not hold two batches (one
  /// without workers), with the numbers.
  Loader(std::shared_ptr<const Dataset> dataset, LoaderSettings settings, Allocator& allocator = host_allocator());
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Starts an epoch over `indices` (into the data set) with their `sample_ids`, of the same length, at batch
  /// `first_batch`. An epoch that is under way is dropped. Throws Error for an index outside the data set.
  void start_epoch(std::uint64_t epoch, std::vector<std::int64_t> indices, std::vector<std::int64_t> sample_ids,
                   std::int64_t first_batch = 0);

  /// Batches in the epoch that was started last, from its beginning.
  std::int64_t batches_per_epoch() const;

  /// The next batch; empty at the end of the epoch. Throws Error naming the sample when reading it failed; the
  /// following call goes on with the batch after it. Throws Error when the caller holds every buffer, for then none
  /// could ever come.
  LoadedBatch next();

  LoaderStatistics statistics() const;

 private:
  std::shared_ptr<loader_detail::Engine> engine_;
};

}  // namespace cohort::data
