#include "data/loader.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <numeric>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "core/config.h"
#include "core/error.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

// Counts every allocation of the process, for the test of the steady state.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace cohort::data {
namespace {

/// Sample i is {x: i and i + 0.5, y: i as int64}; reading takes a time that depends on i, so that workers overtake each
/// other.
class Squares : public Dataset {
 public:
  explicit Squares(std::int64_t size, std::int64_t faulty = -1) : size_(size), faulty_(faulty) {}
  std::int64_t size() const override { return size_; }
  std::vector<FieldSpec> fields() const override {
    return {{"x", ElementType::kFloat32, {2}}, {"y", ElementType::kInt64, {}}};
  }
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override {
    COHORT_THROW_UNLESS(index != faulty_, "the disk is on fire");
    if (index % 7 == 0) std::this_thread::yield();
    auto x = rows[0].span<float>();
    x[0] = static_cast<float>(index);
    x[1] = static_cast<float>(index) + 0.5f;
    rows[1].span<std::int64_t>()[0] = index + static_cast<std::int64_t>(epoch) * 1000;
  }

 private:
  std::int64_t size_, faulty_;
};

std::vector<std::int64_t> numbers(std::int64_t n, std::int64_t first = 0) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(n));
  std::iota(list.begin(), list.end(), first);
  return list;
}

std::vector<std::int64_t> read_epoch(Loader& loader) {
  std::vector<std::int64_t> seen;
  while (LoadedBatch batch = loader.next())
    for (const std::int64_t y : batch.fields()[1].span<std::int64_t>()) seen.push_back(y);
  return seen;
}

TEST(Loader, TheOrderIsTheSameForAnyNumberOfWorkers) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < 500; ++i) indices.push_back(i * 37 % 500);
  for (const int workers : {0, 1, 2, 5}) {
    Loader loader(std::make_shared<Squares>(500), {.batch_size = 8, .workers = workers, .prefetch_factor = 3});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      loader.start_epoch(epoch, indices, numbers(500));
      EXPECT_EQ(loader.batches_per_epoch(), 63);
      std::vector<std::int64_t> expected = indices;
      for (std::int64_t& index : expected) index += static_cast<std::int64_t>(epoch) * 1000;
      EXPECT_EQ(read_epoch(loader), expected) << workers << " workers";
    }
  }
}

TEST(Loader, ABatchHasItsShapeContentAndIds) {
  Loader loader(std::make_shared<Squares>(10), {.batch_size = 4, .workers = 2});
  loader.start_epoch(0, numbers(10), numbers(10, 90), 1);  // starts at batch 1
  LoadedBatch first = loader.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first.fields()[0].shape[0], 4);
  EXPECT_EQ(first.fields()[0].shape[1], 2);
  EXPECT_EQ(first.fields()[0].span<float>()[1], 4.5f);
  EXPECT_EQ(first.sample_ids()[3], 97);
  LoadedBatch last = loader.next();
  EXPECT_EQ(last.size(), 2);
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(first.fields()[0].span<float>()[1], 4.5f) << "a batch that is held must not be overwritten";
}

TEST(Loader, DropLastLeavesOutWhatIsNotFull) {
  Loader loader(std::make_shared<Squares>(10), {.batch_size = 4, .workers = 1, .drop_last = true});
  loader.start_epoch(0, numbers(10), numbers(10));
  EXPECT_EQ(read_epoch(loader).size(), 8u);
}

TEST(Loader, TheSteadyStateAllocatesNothing) {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Squares>(4000), {.batch_size = 8, .workers = workers});
    loader.start_epoch(0, numbers(4000), numbers(4000));
    for (int i = 0; i < 50; ++i) loader.next();
    const std::int64_t before = allocations;
    for (int i = 0; i < 400; ++i) ASSERT_TRUE(loader.next());
    EXPECT_EQ(allocations - before, 0) << workers << " workers";
  }
}

TEST(Loader, AFailingSampleIsNamedAndTheLoaderGoesOn) {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Squares>(30, 13), {.batch_size = 5, .workers = workers});
    loader.start_epoch(0, numbers(30), numbers(30));
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    try {
      loader.next();
      FAIL() << "the fault was swallowed";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "sample 13 could not be read: the disk is on fire");
    }
    LoadedBatch after = loader.next();
    EXPECT_EQ(after.fields()[1].span<std::int64_t>()[0], 15);
    after = LoadedBatch();
    loader.start_epoch(1, numbers(10), numbers(10));
    EXPECT_EQ(read_epoch(loader).size(), 10u);
  }
}

TEST(Loader, TheBudgetLimitsWhatIsHeld) {
  // A batch of 64 samples: 512 B of x and 512 B of y.
  Loader loader(std::make_shared<Squares>(1000),
                {.batch_size = 64, .workers = 4, .prefetch_factor = 8, .memory_budget_bytes = 3500});
  EXPECT_EQ(loader.statistics().buffers, 3);
  EXPECT_EQ(loader.statistics().bytes_held, 3 * 1024);
  loader.start_epoch(0, numbers(1000), numbers(1000));
  EXPECT_EQ(read_epoch(loader), numbers(1000));
  EXPECT_EQ(loader.statistics().batches, 16);
  try {
    Loader small(std::make_shared<Squares>(10), {.batch_size = 64, .workers = 1, .memory_budget_bytes = 2000});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("1.0 KiB"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("memory_budget_bytes"), std::string::npos) << e.what();
  }
}

TEST(Loader, HoldingEveryBatchIsAnErrorAndNotADeadlock) {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Squares>(100),
                  {.batch_size = 4, .workers = workers, .memory_budget_bytes = 3 * 128});
    loader.start_epoch(0, numbers(100), numbers(100));
    std::vector<LoadedBatch> held;
    EXPECT_THROW(
        {
          for (int i = 0; i < 10; ++i) held.push_back(loader.next());
        },
        Error);
    EXPECT_GE(held.size(), 2u);
    held.clear();
    EXPECT_TRUE(loader.next());
  }
}

TEST(Loader, ALeaseOutlivesTheLoaderAndAnEpochCanBeDropped) {
  LoadedBatch kept;
  {
    Loader loader(std::make_shared<Squares>(1000), {.batch_size = 10, .workers = 3});
    for (int round = 0; round < 20; ++round) {
      loader.start_epoch(static_cast<std::uint64_t>(round), numbers(1000), numbers(1000));
      for (int i = 0; i < round % 4; ++i) kept = loader.next();
    }
  }
  EXPECT_EQ(kept.fields()[1].span<std::int64_t>()[0], 19020);
}

TEST(Loader, TorchsSettingsThatAreAlwaysOnAreTakenAndCannotBeSwitchedOff) {
  LoaderSettings settings;
  config::Fields fields;
  describe(fields, settings);
  for (const std::string name : {"pin_memory", "persistent_workers"}) {
    fields.apply_override(name + "=true");
    EXPECT_NO_THROW(Loader(std::make_shared<Squares>(10), settings));
    fields.apply_override(name + "=false");
    try {
      Loader loader(std::make_shared<Squares>(10), settings);
      FAIL() << name;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("loader." + name + "=false is not possible"), std::string::npos) << e.what();
    }
    fields.apply_override(name + "=true");
  }
}

TEST(Loader, AnIndexOutsideTheDataSetIsRefused) {
  Loader loader(std::make_shared<Squares>(5), {.batch_size = 2});
  EXPECT_THROW(loader.start_epoch(0, {0, 5}, {0, 1}), Error);
}

}  // namespace
}  // namespace cohort::data
