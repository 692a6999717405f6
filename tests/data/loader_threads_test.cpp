/// The loader's threads: uneven speed, faults of every kind, epochs and loaders that end early, leases that stay.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include "data/loader.h"
#include "expect_error.h"
#include "random_text.h"

namespace cohort::data {
namespace {

using Indices = std::vector<std::int64_t>;

/// Sample i: `value` (2 x 3) of i + k / 16 + epoch * 1000, `number` of i.
class SlowSet final : public Dataset {
 public:
  explicit SlowSet(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::vector<FieldSpec> fields() const override {
    return {{"value", ElementType::kFloat32, {2, 3}}, {"number", ElementType::kInt64, {}}};
  }
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override {
    reads.fetch_add(1, std::memory_order_relaxed);
    if (uneven) {
      TestRandom random(static_cast<std::uint64_t>(index) * 77 + epoch);
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
    }
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (index == strange) throw 5;
    auto* value = static_cast<float*>(rows[0].data);
    for (int k = 0; k < 6; ++k)
      value[k] = static_cast<float>(index) + static_cast<float>(k) / 16 + static_cast<float>(epoch) * 1000;
    *static_cast<std::int64_t*>(rows[1].data) = index;
  }
  mutable std::atomic<std::int64_t> reads{0};
  std::int64_t strange = -1;
  bool uneven = false;
  std::chrono::microseconds delay{0};

 private:
  std::int64_t size_;
};

Indices draw(std::int64_t count, std::int64_t size) {
  TestRandom random(static_cast<std::uint64_t>(count));
  Indices indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(random.below(static_cast<int>(size)));
  return indices;
}

Indices count_from(std::int64_t first, std::int64_t count) {
  Indices list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

/// The batch holds samples [first, ...) of `indices`; their ids are 5000 + position.
void expect_batch(const LoadedBatch& batch, const Indices& indices, std::int64_t first, std::uint64_t epoch) {
  ASSERT_TRUE(batch);
  const auto values = batch.fields()[0].span<float>();
  const auto numbers = batch.fields()[1].span<std::int64_t>();
  for (std::int64_t s = 0; s < batch.size(); ++s) {
    const std::int64_t index = indices[static_cast<std::size_t>(first + s)];
    ASSERT_EQ(numbers[static_cast<std::size_t>(s)], index);
    ASSERT_EQ(batch.sample_ids()[static_cast<std::size_t>(s)], first + s + 5000);
    for (int k = 0; k < 6; ++k)
      ASSERT_EQ(values[static_cast<std::size_t>(s * 6 + k)],
                static_cast<float>(index) + static_cast<float>(k) / 16 + static_cast<float>(epoch) * 1000);
  }
}

TEST(LoaderThreads, WorkersOfUnevenSpeedKeepOrderAndContent) {
  const auto dataset = std::make_shared<SlowSet>(500);
  dataset->uneven = true;
  const Indices indices = draw(203, 500);
  for (const int workers : {0, 1, 2, 5}) {
    Loader loader(dataset, {.batch_size = 8, .workers = workers});
    for (const std::uint64_t epoch : {0, 3}) {
      loader.start_epoch(epoch, indices, count_from(5000, 203));
      std::int64_t first = 0;
      while (LoadedBatch batch = loader.next()) {
        expect_batch(batch, indices, first, epoch);
        first += batch.size();
      }
      EXPECT_EQ(first, 203);
      EXPECT_FALSE(loader.next());
    }
  }
}

TEST(LoaderThreads, ANewEpochDropsTheOldOneAndWaitsForNoMoreThanASample) {
  const auto dataset = std::make_shared<SlowSet>(400);
  dataset->uneven = true;
  const Indices indices = draw(300, 400);
  Loader loader(dataset, {.batch_size = 4, .workers = 3, .prefetch_factor = 3});
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    loader.start_epoch(epoch, indices, count_from(5000, 300));
    for (std::uint64_t b = 0; b < epoch % 7; ++b)
      expect_batch(loader.next(), indices, static_cast<std::int64_t>(b) * 4, epoch);
  }
  const auto slow = std::make_shared<SlowSet>(200000);
  slow->delay = std::chrono::milliseconds(1);
  Loader large(slow, {.batch_size = 100000, .workers = 2});  // a batch takes 100 s
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
    large.start_epoch(epoch, count_from(0, 200000), count_from(0, 200000));
  EXPECT_LT(slow->reads, 100000) << "no batch was made";
}

TEST(LoaderThreads, DestructionStopsBetweenSamples) {
  const auto dataset = std::make_shared<SlowSet>(100000);
  dataset->delay = std::chrono::milliseconds(1);
  {
    Loader loader(dataset, {.batch_size = 100000, .workers = 3});
    loader.start_epoch(0, count_from(0, 100000), count_from(0, 100000));
    while (dataset->reads == 0) std::this_thread::yield();
  }
  EXPECT_LT(dataset->reads, 100000) << "no batch was made";
  Loader never_started(dataset, {.workers = 3});
  EXPECT_FALSE(never_started.next());
}

TEST(LoaderThreads, WhatIsNoStandardExceptionReachesTheCallerToo) {
  const auto dataset = std::make_shared<SlowSet>(100);
  dataset->strange = 13;
  for (const int workers : {0, 2}) {
    Loader loader(dataset, {.batch_size = 10, .workers = workers});
    loader.start_epoch(0, count_from(0, 40), count_from(5000, 40));
    EXPECT_TRUE(loader.next());
    EXPECT_ERROR(loader.next(), "sample 13 could not be read: the data set threw what is no std::exception");
    expect_batch(loader.next(), count_from(0, 40), 20, 0);
  }
}

TEST(LoaderThreads, TwoBuffersSufficeForALoopThatKeepsOneBatch) {
  const auto dataset = std::make_shared<SlowSet>(100);
  const Indices indices = draw(100, 100);
  for (const int workers : {0, 1, 3}) {
    Loader loader(dataset, {.batch_size = 16, .workers = workers, .memory_budget_bytes = 1024});
    ASSERT_EQ(loader.statistics().buffers, 2);
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      loader.start_epoch(epoch, indices, count_from(5000, 100));
      LoadedBatch batch;
      std::int64_t first = 0;
      while ((batch = loader.next())) {
        expect_batch(batch, indices, first, epoch);
        first += batch.size();
      }
      EXPECT_EQ(first, 100);
    }
  }
}

TEST(LoaderThreads, LeasesAreReleasedInAnyOrderByAnyThread) {
  const auto dataset = std::make_shared<SlowSet>(2000);
  const Indices indices = draw(2000, 2000);
  Loader loader(dataset, {.batch_size = 4, .workers = 2, .prefetch_factor = 8});
  loader.start_epoch(2, indices, count_from(5000, 2000));
  TestRandom random(1);
  std::vector<std::thread> holders;
  std::int64_t first = 0;
  while (LoadedBatch batch = loader.next()) {
    const std::int64_t at = first;
    first += batch.size();
    if (holders.size() == 8) {
      holders[static_cast<std::size_t>(random.below(8))].swap(holders.back());
      holders.back().join();
      holders.pop_back();
    }
    holders.emplace_back([lease = std::make_shared<LoadedBatch>(std::move(batch)), &indices, at,
                          wait = std::chrono::microseconds(random.below(300))]() mutable {
      std::this_thread::sleep_for(wait);
      expect_batch(*lease, indices, at, 2);
      lease.reset();
    });
  }
  for (std::thread& holder : holders) holder.join();
  EXPECT_EQ(first, 2000);
}

TEST(LoaderThreads, TheyStayAcrossEpochsAndTakeNoSignals) {
  class ThreadSet final : public Dataset {
   public:
    std::int64_t size() const override { return 64; }
    std::vector<FieldSpec> fields() const override {
      return {{"thread", ElementType::kInt64, {}}, {"blocks_sigterm", ElementType::kInt64, {}}};
    }
    void read(std::int64_t, std::uint64_t, std::span<const ArrayView> rows) const override {
      static_assert(sizeof(std::thread::id) == sizeof(std::int64_t));
      const std::thread::id id = std::this_thread::get_id();
      std::memcpy(rows[0].data, &id, sizeof id);
      sigset_t blocked;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      *static_cast<std::int64_t*>(rows[1].data) = ::sigismember(&blocked, SIGTERM);
    }
  };
  Loader loader(std::make_shared<ThreadSet>(), {.batch_size = 1, .workers = 1});
  Indices seen;
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    loader.start_epoch(epoch, count_from(0, 64), count_from(0, 64));
    while (LoadedBatch batch = loader.next()) {
      seen.push_back(batch.fields()[0].span<std::int64_t>()[0]);
      EXPECT_EQ(batch.fields()[1].span<std::int64_t>()[0], 1);
    }
  }
  EXPECT_EQ(seen.size(), 320u);
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [&](std::int64_t id) { return id == seen.front(); }));
}

}  // namespace
}  // namespace cohort::data
