#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "core/threads.h"

namespace cohort::data {

void describe(config::Fields& fields, LoaderSettings& settings) {
  fields.add("workers", settings.workers, "threads that prepare batches; 0 prepares them in the training thread");
  fields.add("prefetch_factor", settings.prefetch_factor, "batches that each worker prepares ahead");
  fields.add("memory_budget_bytes", settings.memory_budget_bytes, "bytes that all prepared batches together may hold");
  fields.add("pin_memory", settings.pin_memory, "always on where there is a GPU: accepted for the name's sake");
  fields.add("persistent_workers", settings.persistent_workers, "always on: workers live as long as the run");
}

namespace loader_detail {

struct Buffer {
  std::byte* memory = nullptr;
  std::vector<ArrayView> fields;         // (batch_size, ...), with shape[0] set to the samples that are in it
  std::vector<ArrayView> rows;           // one sample of each field; scratch of whoever fills the buffer
  std::vector<std::int64_t> sample_ids;  // capacity batch_size
  std::exception_ptr failure;
};

/// What the workers, the loader and the leases share. Everything below `mutex_` is guarded by it. A worker takes a free
/// buffer and the next batch number together, so that the earliest unfinished batch always has a buffer.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::shared_ptr<const Dataset> dataset, LoaderSettings settings, Allocator& allocator)
      : dataset_(std::move(dataset)), settings_(settings), allocator_(allocator) {
    COHORT_THROW_UNLESS(settings.batch_size >= 1, "the batch size must be at least 1, not {}", settings.batch_size);
    COHORT_THROW_UNLESS(settings.workers >= 0 && settings.prefetch_factor >= 1,
                        "loader.workers must be at least 0 and loader.prefetch_factor at least 1, not {} and {}",
                        settings.workers, settings.prefetch_factor);
    COHORT_THROW_UNLESS(settings.pin_memory,
                        "loader.pin_memory=false is not possible: with a GPU batches always lie in pinned memory; "
                        "leave it out");
    COHORT_THROW_UNLESS(settings.persistent_workers,
                        "loader.persistent_workers=false is not possible: workers are threads that live as long as the "
                        "run; leave it out");
    specs_ = dataset_->fields();
    COHORT_CHECK(!specs_.empty(), "the data set has no fields");
    for (const FieldSpec& spec : specs_) {
      std::int64_t elements = 1;
      for (const std::int64_t n : spec.sample_shape) elements *= n;
      sample_bytes_.push_back(static_cast<std::size_t>(elements) * element_size(spec.type));
      buffer_bytes_ += aligned(sample_bytes_.back() * static_cast<std::size_t>(settings.batch_size));
    }
    const std::int64_t one = static_cast<std::int64_t>(buffer_bytes_);
    const std::int64_t least = settings.workers == 0 ? 1 : 2;
    const std::int64_t fit = settings.memory_budget_bytes / std::max<std::int64_t>(one, 1);
    COHORT_THROW_UNLESS(
        fit >= least,
        "a batch of {} samples takes {}, but loader.memory_budget_bytes is {}: it must hold at least {}; "
        "lower train.batch_size or raise the budget",
        settings.batch_size, format_bytes(static_cast<double>(one)),
        format_bytes(static_cast<double>(settings.memory_budget_bytes)), least == 1 ? "one" : "two");
    // Two for the caller (the batch in use and the one being copied), the rest prepared ahead.
    const std::int64_t wanted = 2 + std::int64_t{settings.workers} * settings.prefetch_factor;
    buffers_.resize(static_cast<std::size_t>(std::min(wanted, fit)));
    try {
      for (Buffer& buffer : buffers_) prepare(buffer);
    } catch (...) {
      free_memory();
      throw;
    }
    for (Buffer& buffer : buffers_) free_.push_back(&buffer);
    ready_.resize(buffers_.size());
  }

  ~Engine() { free_memory(); }

  void start_workers() {
    try {
      for (int i = 0; i < settings_.workers; ++i)
        workers_.emplace_back([this, i] {
          block_signals_in_this_thread();
          set_thread_name(format("cohort-load-{}", i));
          work();
        });
    } catch (const std::system_error& e) {
      const std::size_t started = workers_.size();
      stop_workers();
      throw Error(format("only {} of {} loader threads could be started ({}); lower loader.workers", started,
                         settings_.workers, e.what()));
    }
  }

  void stop_workers() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    may_fill_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    std::lock_guard lock(mutex_);
    drop_ready();
  }

  void start_epoch(std::uint64_t epoch, std::vector<std::int64_t> indices, std::vector<std::int64_t> sample_ids,
                   std::int64_t first_batch) {
    COHORT_CHECK(indices.size() == sample_ids.size(), "{} indices, but {} sample ids", indices.size(),
                 sample_ids.size());
    const std::int64_t size = dataset_->size();
    for (const std::int64_t index : indices)
      COHORT_THROW_UNLESS(index >= 0 && index < size, "sample {} lies outside the data set of {}", index, size);
    COHORT_THROW_UNLESS(first_batch >= 0, "an epoch cannot start at batch {}", first_batch);
    std::unique_lock lock(mutex_);
    ++generation_;  // what is being filled now belongs to no epoch any more
    batches_ = 0;
    next_ticket_ = 0;
    idle_.wait(lock, [this] { return filling_ == 0; });
    drop_ready();
    indices_ = std::move(indices);
    sample_ids_ = std::move(sample_ids);
    epoch_ = epoch;
    const std::int64_t count = static_cast<std::int64_t>(indices_.size());
    batches_ =
        settings_.drop_last ? count / settings_.batch_size : (count + settings_.batch_size - 1) / settings_.batch_size;
    next_ticket_ = next_out_ = std::min(first_batch, batches_);
    lock.unlock();
    may_fill_.notify_all();
  }

  std::int64_t batches() const {
    std::lock_guard lock(mutex_);
    return batches_;
  }

  LoadedBatch next() {
    std::unique_lock lock(mutex_);
    if (next_out_ >= batches_) return {};
    Buffer* buffer = nullptr;
    if (settings_.workers == 0) {
      throw_if_all_held();
      buffer = take_free();
      const std::int64_t batch = next_out_++;
      lock.unlock();
      fill(*buffer, batch, generation_);
      lock.lock();
    } else {
      const auto start = std::chrono::steady_clock::now();
      for (;;) {
        std::optional<Ready>& slot = ready_[static_cast<std::size_t>(next_out_) % ready_.size()];
        if (slot) {
          buffer = slot->buffer;
          slot.reset();
          break;
        }
        if (filling_ == 0 && next_ticket_ == next_out_) throw_if_all_held();
        is_ready_.wait(lock);
      }
      ++next_out_;
      statistics_.wait_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    if (buffer->failure) {
      const std::exception_ptr failure = buffer->failure;
      give_back(buffer);
      lock.unlock();
      may_fill_.notify_one();
      std::rethrow_exception(failure);
    }
    ++statistics_.batches;
    LoadedBatch batch;
    batch.engine_ = shared_from_this();
    batch.buffer_ = buffer;
    const bool wake = should_wake_worker();
    lock.unlock();
    if (wake) may_fill_.notify_one();
    return batch;
  }

  /// Takes a leased buffer back.
  void release(Buffer* buffer) {
    bool wake = false;
    {
      std::lock_guard lock(mutex_);
      give_back(buffer);
      wake = should_wake_worker();
    }
    if (wake) may_fill_.notify_one();
  }

  LoaderStatistics statistics() const {
    std::lock_guard lock(mutex_);
    LoaderStatistics copy = statistics_;
    copy.buffers = static_cast<std::int64_t>(buffers_.size());
    copy.bytes_held = copy.buffers * static_cast<std::int64_t>(buffer_bytes_);
    return copy;
  }

 private:
  struct Ready {
    Buffer* buffer;
  };
  static std::size_t aligned(std::size_t bytes) {
    return (bytes + kAllocationAlignment - 1) / kAllocationAlignment * kAllocationAlignment;
  }

  void prepare(Buffer& buffer) {
    buffer.memory = static_cast<std::byte*>(allocator_.allocate(buffer_bytes_));
    std::byte* begin = buffer.memory;
    for (std::size_t f = 0; f < specs_.size(); ++f) {
      std::vector<std::int64_t> shape{settings_.batch_size};
      shape.insert(shape.end(), specs_[f].sample_shape.begin(), specs_[f].sample_shape.end());
      buffer.fields.push_back(make_view(begin, specs_[f].type, shape));
      buffer.rows.push_back(make_view(begin, specs_[f].type, specs_[f].sample_shape));
      begin += aligned(sample_bytes_[f] * static_cast<std::size_t>(settings_.batch_size));
    }
    buffer.sample_ids.reserve(static_cast<std::size_t>(settings_.batch_size));
  }

  void free_memory() {
    for (Buffer& buffer : buffers_)
      if (buffer.memory) allocator_.deallocate(buffer.memory, buffer_bytes_);
  }

  /// The functions from here to `work` are called with mutex_ held.
  Buffer* take_free() {
    Buffer* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }

  void give_back(Buffer* buffer) {
    buffer->failure = nullptr;
    free_.push_back(buffer);  // capacity was reached at construction
  }

  void drop_ready() {
    for (auto& slot : ready_)
      if (slot) {
        give_back(slot->buffer);
        slot.reset();
      }
  }

  /// Waking a thread costs more than preparing a small batch. So workers sleep on until half of what they may be ahead
  /// is used up, and are woken one at a time; each goes on until there is nothing left to do.
  bool should_wake_worker() const {
    const std::int64_t ahead = next_ticket_ - next_out_;
    const std::int64_t most_ahead = std::max<std::int64_t>(0, static_cast<std::int64_t>(buffers_.size()) - 2);
    return sleeping_ > 0 && next_ticket_ < batches_ && !free_.empty() && ahead <= most_ahead / 2;
  }

  void throw_if_all_held() const {
    COHORT_THROW_UNLESS(!free_.empty(),
                        "all {} batches of the loader are still held by the caller; let go of earlier ones, or raise "
                        "loader.prefetch_factor or loader.memory_budget_bytes",
                        buffers_.size());
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++sleeping_;
      may_fill_.wait(lock, [this] { return stopping_ || (next_ticket_ < batches_ && !free_.empty()); });
      --sleeping_;
      if (stopping_) return;
      Buffer* buffer = take_free();
      const std::int64_t batch = next_ticket_++;
      const std::uint64_t generation = generation_;
      ++filling_;
      lock.unlock();
      fill(*buffer, batch, generation);
      lock.lock();
      --filling_;
      if (generation == generation_) {
        ready_[static_cast<std::size_t>(batch) % ready_.size()] = Ready{buffer};
        if (batch == next_out_) is_ready_.notify_one();
      } else {
        give_back(buffer);
        if (filling_ == 0) idle_.notify_all();
      }
    }
  }

  /// Without the lock: indices_ and sample_ids_ change only when nobody fills. Gives up between samples when nobody
  /// wants the batch any more.
  void fill(Buffer& buffer, std::int64_t batch, std::uint64_t generation) {
    const std::int64_t begin = batch * settings_.batch_size;
    const std::int64_t count = std::min(settings_.batch_size, static_cast<std::int64_t>(indices_.size()) - begin);
    buffer.sample_ids.assign(sample_ids_.begin() + begin, sample_ids_.begin() + begin + count);
    for (ArrayView& field : buffer.fields) field.shape[0] = count;
    std::int64_t index = -1;
    std::string cause;
    try {
      for (std::int64_t i = 0; i < count; ++i) {
        if (stopping_.load(std::memory_order_relaxed) || generation_.load(std::memory_order_relaxed) != generation)
          return;
        index = indices_[static_cast<std::size_t>(begin + i)];
        for (std::size_t f = 0; f < specs_.size(); ++f)
          buffer.rows[f].data =
              static_cast<std::byte*>(buffer.fields[f].data) + static_cast<std::size_t>(i) * sample_bytes_[f];
        dataset_->read(index, epoch_, buffer.rows);
      }
      return;
    } catch (const std::exception& e) {
      cause = e.what();
    } catch (...) {
      cause = "the data set threw what is no std::exception";
    }
    buffer.failure = std::make_exception_ptr(Error(format("sample {} could not be read: {}", index, cause)));
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderSettings settings_;
  Allocator& allocator_;
  std::vector<FieldSpec> specs_;
  std::vector<std::size_t> sample_bytes_;
  std::size_t buffer_bytes_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<std::thread> workers_;

  mutable std::mutex mutex_;
  std::condition_variable may_fill_;  // a buffer is free and a batch is left
  std::condition_variable is_ready_;  // batch next_out_ is there
  std::condition_variable idle_;      // nobody fills
  std::vector<Buffer*> free_;
  std::vector<std::optional<Ready>> ready_;  // batch b at b % size: at most that many are unfinished or waiting
  std::vector<std::int64_t> indices_, sample_ids_;
  std::uint64_t epoch_ = 0;
  std::atomic<std::uint64_t> generation_{0};  // of epochs; written under mutex_
  std::int64_t batches_ = 0;
  std::int64_t next_ticket_ = 0;  // the batch that a worker takes next
  std::int64_t next_out_ = 0;     // the batch that next() returns
  int filling_ = 0;
  int sleeping_ = 0;                   // workers that wait for may_fill_
  std::atomic<bool> stopping_{false};  // written under mutex_
  LoaderStatistics statistics_;
};

}  // namespace loader_detail

LoadedBatch::LoadedBatch(LoadedBatch&& other) noexcept
    : engine_(std::move(other.engine_)), buffer_(std::exchange(other.buffer_, nullptr)) {}

LoadedBatch& LoadedBatch::operator=(LoadedBatch&& other) noexcept {
  LoadedBatch former(std::move(*this));  // released at the end of this scope
  engine_ = std::move(other.engine_);
  buffer_ = std::exchange(other.buffer_, nullptr);
  return *this;
}

LoadedBatch::~LoadedBatch() {
  if (buffer_) engine_->release(buffer_);
}

std::span<const ArrayView> LoadedBatch::fields() const {
  return buffer_->fields;
}
std::span<const std::int64_t> LoadedBatch::sample_ids() const {
  return buffer_->sample_ids;
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderSettings settings, Allocator& allocator)
    : engine_(std::make_shared<loader_detail::Engine>(std::move(dataset), settings, allocator)) {
  engine_->start_workers();
}

Loader::~Loader() {
  engine_->stop_workers();
}

void Loader::start_epoch(std::uint64_t epoch, std::vector<std::int64_t> indices, std::vector<std::int64_t> sample_ids,
                         std::int64_t first_batch) {
  engine_->start_epoch(epoch, std::move(indices), std::move(sample_ids), first_batch);
}

std::int64_t Loader::batches_per_epoch() const {
  return engine_->batches();
}

LoadedBatch Loader::next() {
  return engine_->next();
}

LoaderStatistics Loader::statistics() const {
  return engine_->statistics();
}

}  // namespace cohort::data
