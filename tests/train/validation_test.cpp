#include "train/validation.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/allocator.h"
#include "train/loader_source.h"
#include "train/tiny_training.h"
#include "train/trainable.h"

namespace cohort::train {
namespace {

constexpr std::int64_t kSamples = 13;

/// Sample i has the value (i + 1)².
class Squares final : public data::Dataset {
 public:
  std::int64_t size() const override { return kSamples; }
  std::vector<data::FieldSpec> fields() const override { return {{"x", ElementType::kFloat32, {1}}}; }
  void read(std::int64_t index, std::uint64_t, std::span<const ArrayView> rows) const override {
    *static_cast<float*>(rows[0].data) = static_cast<float>((index + 1) * (index + 1));
  }
};

/// Its loss is the mean value, its one figure the sum of the values.
class Mean final : public Trainable {
 public:
  std::string name() const override { return "mean"; }
  std::string summary() const override { return "the mean of the values"; }
  std::string data_summary() const override { return ""; }
  std::shared_ptr<torch::nn::Module> make_model(std::uint64_t) const override { return tiny_model(); }
  at::Tensor loss(torch::nn::Module&, const parallel::Batch& batch) const override { return batch.at("x").mean(); }
  std::string loss_name() const override { return "mean"; }
  std::vector<Metric> validation_figures(torch::nn::Module&, const parallel::Batch& batch) const override {
    return {{"validation/value", batch.at("x").sum().item<double>(), static_cast<double>(batch.size())}};
  }
};

// Every sample once: sums of whole numbers, which are exact. With 16 ranks, three have nothing but padding.
TEST(Validation, EverySampleCountsOnceWhateverTheNumberOfRanks) {
  double sum = 0.0;
  for (std::int64_t i = 1; i <= kSamples; ++i) sum += static_cast<double>(i * i);
  const Mean job;
  const auto model = tiny_model();
  for (const std::int64_t world : {1, 2, 3, 4, 16}) {
    std::vector<Metric> of_job(2);
    for (std::int64_t rank = 0; rank < world; ++rank) {
      LoaderSource source(std::make_shared<Squares>(), {.world_size = world, .rank = rank, .shuffle = false},
                          {.batch_size = 2, .workers = 0}, host_allocator());
      const auto both = validator_of(job, source, Precision::kFp32, at::kCPU)(*model, 1);
      ASSERT_EQ(both.size(), 2u) << "the same figures on every rank, rank " << rank << " of " << world;
      for (std::size_t i = 0; i < both.size(); ++i) {
        of_job[i].sum += both[i].sum;
        of_job[i].weight += both[i].weight;
      }
    }
    constexpr double kMeans = 1e-4;  // a mean of float32 times the number of its samples
    for (const Metric& metric : of_job) {
      EXPECT_NEAR(metric.sum, sum, kMeans) << world << " ranks";
      EXPECT_EQ(metric.weight, static_cast<double>(kSamples)) << world << " ranks";
    }
  }
}

}  // namespace
}  // namespace cohort::train
