/// A small training for tests: a model with dropout, batches that are a function of seed and epoch, and a strategy.
#pragma once
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"
#include "models/random_context.h"
#include "parallel/strategy.h"
#include "train/batch_source.h"

namespace cohort::train {

/// Multiplies each element by a mask of 0 and 2 that is keyed by (seed, step, sample id), as models/dropout.h does.
inline at::Tensor keyed_dropout(const at::Tensor& x) {
  const auto& context = models::random_context();
  at::Tensor mask = torch::empty(x.sizes());
  const std::int64_t width = x.numel() / x.size(0);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const RandomStream stream(context.seed, RandomPurpose::kDropout, context.sample_ids[i].item<std::int64_t>(),
                              context.step);
    for (std::int64_t j = 0; j < width; ++j) {
      mask.data_ptr<float>()[i * width + j] = stream.uniform(static_cast<std::uint64_t>(j)) < 0.5f ? 0.0f : 2.0f;
    }
  }
  return x * mask;
}

struct TinyModel : torch::nn::Module {
  explicit TinyModel(bool with_generator_dropout = false) : generator_dropout(with_generator_dropout) {
    one = register_module("one", torch::nn::Linear(3, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    two = register_module("two", torch::nn::Linear(16, 2));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = norm(torch::gelu(one(x)));
    if (is_training()) h = keyed_dropout(h);
    if (generator_dropout) h = torch::dropout(h, 0.25, is_training());
    return two(h);
  }
  bool generator_dropout;
  torch::nn::Linear one{nullptr}, two{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

inline at::Tensor tiny_loss(torch::nn::Module& model, const parallel::Batch& batch) {
  return torch::mse_loss(dynamic_cast<TinyModel&>(model).forward(batch.at("x")), batch.at("y"));
}

inline std::shared_ptr<TinyModel> tiny_model(std::uint64_t seed = 7, bool generator_dropout = false) {
  torch::manual_seed(seed);
  return std::make_shared<TinyModel>(generator_dropout);
}

/// Samples of a smooth function; an epoch is their order in a permutation keyed by seed and epoch. Rank r of W takes
/// places r, r + W, ...; what does not fill a batch on every rank is left out.
class TinySource final : public BatchSource {
 public:
  TinySource(std::int64_t samples, std::int64_t batch, int rank = 0, int world = 1)
      : samples_(samples), batch_(batch), rank_(rank), world_(world) {}

  std::int64_t samples_per_epoch() const override { return samples_; }
  std::int64_t batches_per_epoch() const override { return samples_ / (batch_ * world_); }
  std::int64_t start_epoch(std::int64_t epoch, std::int64_t first_sample) override {
    order_.resize(static_cast<std::size_t>(samples_));
    for (std::int64_t i = 0; i < samples_; ++i) order_[static_cast<std::size_t>(i)] = i;
    const RandomStream stream(11, RandomPurpose::kDataOrder, 0, static_cast<std::uint64_t>(epoch));
    for (std::int64_t i = samples_ - 1; i > 0; --i) {
      const auto j = stream.below(static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(i + 1));
      std::swap(order_[static_cast<std::size_t>(i)], order_[j]);
    }
    position_ = first_sample;
    epoch_ = epoch;
    return (samples_ - first_sample) / (batch_ * world_);
  }
  std::optional<parallel::Batch> next() override {
    if (position_ + batch_ * world_ > samples_) return std::nullopt;
    if (std::ssize(seen) == fails_behind) throw Error("the picture of step 3 is damaged");
    parallel::Batch batch;
    batch.sample_ids = torch::empty({batch_}, torch::kLong);
    at::Tensor x = torch::empty({batch_, 3}), y = torch::empty({batch_, 2});
    for (std::int64_t i = 0; i < batch_; ++i) {
      const std::int64_t place = position_ + i * world_ + rank_;
      const std::int64_t sample = order_[static_cast<std::size_t>(place)];
      seen.push_back(sample);
      batch.sample_ids[i] = epoch_ * samples_ + place;
      const RandomStream stream(5, RandomPurpose::kTest, static_cast<std::uint64_t>(sample), 0);
      for (std::int64_t k = 0; k < 3; ++k) x[i][k] = stream.normal(static_cast<std::uint64_t>(k));
      y[i][0] = std::sin(x[i][0].item<float>());
      y[i][1] = x[i][1].item<float>() * x[i][2].item<float>();
      if (sample == poisoned) x[i][1] = std::nanf("");
    }
    position_ += batch_ * world_;
    batch.add("x", x);
    batch.add("y", y);
    return batch;
  }
  double wait_seconds() const override { return 0.0; }

  std::vector<std::int64_t> seen;  ///< samples that this rank has yielded
  std::int64_t poisoned = -1;      ///< this sample holds a NaN
  std::int64_t fails_behind = -1;  ///< so many samples it throws, as a reader does that meets damage

 private:
  std::int64_t samples_, batch_;
  int rank_, world_;
  std::int64_t epoch_ = 0, position_ = 0;
  std::vector<std::int64_t> order_;
};

/// One process on the CPU.
class PlainStrategy final : public parallel::Strategy {
 public:
  explicit PlainStrategy(std::shared_ptr<torch::nn::Module> model) : model_(std::move(model)) {}
  at::Tensor forward_backward(const parallel::Batch& batch, const parallel::LossFunction& loss,
                              const parallel::BackwardOptions& options) override {
    const at::Tensor value = loss(*model_, batch);
    at::Tensor scaled = options.weight == 1.0 ? value : value * options.weight;
    if (options.loss_scale.defined()) scaled = scaled * options.loss_scale;
    scaled.backward();
    return value.detach();
  }
  torch::nn::Module& module() override { return *model_; }
  void zero_grad() override {
    for (auto& parameter : model_->parameters()) parameter.mutable_grad().reset();
  }
  void parameters_changed() override { ++changes; }
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int replicas() const override { return 1; }
  void mean_over_ranks(at::Tensor&) override {}
  void max_over_ranks(at::Tensor&) override {}
  void barrier() override {}

  int changes = 0;

 private:
  std::shared_ptr<torch::nn::Module> model_;
};

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         at::equal(a.contiguous().reshape({-1}).view(at::kByte), b.contiguous().reshape({-1}).view(at::kByte));
}

}  // namespace cohort::train
