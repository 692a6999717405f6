#include "train/loader_source.h"

#include <set>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/error.h"

namespace cohort::train {
namespace {

/// Sample i has x = (i, 10 i) and the label i.
class Counting final : public data::Dataset {
 public:
  explicit Counting(std::int64_t n) : n_(n) {}
  std::int64_t size() const override { return n_; }
  std::vector<data::FieldSpec> fields() const override {
    return {{"x", ElementType::kFloat32, {2}}, {"label", ElementType::kInt64, {}}};
  }
  void read(std::int64_t index, std::uint64_t, std::span<const ArrayView> rows) const override {
    auto* x = static_cast<float*>(rows[0].data);
    x[0] = static_cast<float>(index);
    x[1] = static_cast<float>(10 * index);
    *static_cast<std::int64_t*>(rows[1].data) = index;
  }

 private:
  std::int64_t n_;
};

std::vector<std::int64_t> labels_of(LoaderSource& source) {
  std::vector<std::int64_t> labels;
  while (auto batch = source.next()) {
    const at::Tensor label = batch->at("label");
    for (std::int64_t i = 0; i < label.numel(); ++i) {
      labels.push_back(label[i].item<std::int64_t>());
      EXPECT_EQ(batch->at("x")[i][1].item<float>(), 10.0f * static_cast<float>(labels.back()));
    }
    EXPECT_EQ(batch->sample_ids.numel(), batch->size());
  }
  return labels;
}

TEST(LoaderSource, ABatchKeepsItsMemoryWhileItsTensorsLive) {
  LoaderSource source(std::make_shared<Counting>(64), {.shuffle = false},
                      {.batch_size = 4, .workers = 2, .prefetch_factor = 2}, host_allocator());
  source.start_epoch(0, 0);
  const auto kept = source.next();
  const at::Tensor x = kept->at("x");
  for (int i = 0; i < 10; ++i) source.next();
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(x[i][0].item<float>(), static_cast<float>(i));
}

TEST(LoaderSource, SaysHowManyBatchesAreLeftAndYieldsAsMany) {
  for (const bool drop_last : {false, true}) {
    for (const std::int64_t first : {0, 12, 40, 50, 53}) {
      std::int64_t counts[2];
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        LoaderSource source(std::make_shared<Counting>(53), {.world_size = 2, .rank = rank},
                            {.batch_size = 4, .workers = 1, .drop_last = drop_last}, host_allocator());
        const std::int64_t stated = source.start_epoch(1, first);
        std::int64_t met = 0;
        while (source.next()) ++met;
        EXPECT_EQ(met, stated) << first << drop_last;
        counts[rank] = stated;
        if (first == 0) EXPECT_EQ(stated, source.batches_per_epoch());
      }
      EXPECT_EQ(counts[0], counts[1]) << "ranks would wait for each other for ever";
    }
  }
}

TEST(LoaderSource, OtherRanksGoOnWhereTheFormerStopped) {
  const auto dataset = std::make_shared<Counting>(48);
  const auto source = [&](std::int64_t world, std::int64_t rank) {
    return LoaderSource(dataset, {.world_size = world, .rank = rank, .seed = 5}, {.batch_size = 4, .workers = 1},
                        host_allocator());
  };
  std::set<std::int64_t> seen;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto before = source(2, rank);
    before.start_epoch(3, 0);
    for (int i = 0; i < 2; ++i) {
      const auto batch = before.next();
      for (std::int64_t k = 0; k < 4; ++k) seen.insert(batch->at("label")[k].item<std::int64_t>());
    }
  }
  EXPECT_EQ(seen.size(), 16u);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    auto after = source(4, rank);
    EXPECT_EQ(after.start_epoch(3, 16), 2);
    for (const auto label : labels_of(after)) EXPECT_TRUE(seen.insert(label).second) << label << " came twice";
  }
  EXPECT_EQ(seen.size(), 48u);
}

}  // namespace
}  // namespace cohort::train
