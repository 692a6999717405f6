/// The model, weights and batches that tests/parallel/ddp_reference.py builds in the same way: numbers come from an
/// integer formula, so that both sides start from equal bits.
#pragma once
#include <cstdint>
#include <vector>

#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "parallel/batch.h"

namespace cohort::test {

/// Numbers in [-0.5, 0.5) with 24 bits, a function of (seed, position).
inline at::Tensor numbers(std::uint64_t seed, at::IntArrayRef shape) {
  at::Tensor result = torch::empty(shape, at::kFloat);
  float* out = result.data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    std::uint64_t z = seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(i) * 0xBF58476D1CE4E5B9ULL;
    z ^= z >> 31;
    z *= 0x94D049BB133111EBULL;
    z ^= z >> 29;
    out[i] = static_cast<float>(z >> 40) / 16777216.0f - 0.5f;
  }
  return result;
}

inline constexpr int kInputs = 12;
inline constexpr int kHidden = 48;
inline constexpr int kOutputs = 2;
inline constexpr int kBatch = 16;

/// Three linear layers; optionally BatchNorm after the first, and a layer that is used only when asked for.
struct FixtureNetImpl : torch::nn::Cloneable<FixtureNetImpl> {
  bool with_norm = false;
  bool with_extra = false;
  bool use_extra = true;
  int hidden = kHidden;
  torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr}, extra{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};

  explicit FixtureNetImpl(bool norm_layer = false, bool extra_layer = false, int width = kHidden)
      : with_norm(norm_layer), with_extra(extra_layer), hidden(width) {
    reset();
  }
  void reset() override {
    a = register_module("a", torch::nn::Linear(kInputs, hidden));
    if (with_norm) norm = register_module("norm", torch::nn::BatchNorm1d(hidden));
    b = register_module("b", torch::nn::Linear(hidden, hidden));
    if (with_extra) extra = register_module("extra", torch::nn::Linear(hidden, hidden));
    c = register_module("c", torch::nn::Linear(hidden, kOutputs));
  }
  at::Tensor forward(at::Tensor x) {
    x = torch::tanh(a(x));
    if (with_norm) x = norm(x);
    x = torch::gelu(b(x));
    if (with_extra && use_extra) x = x + torch::gelu(extra(x));
    return c(x);
  }
};
TORCH_MODULE(FixtureNet);

/// Weights that differ from rank to rank, so that a missing broadcast shows.
inline void fill_parameters(torch::nn::Module& model, int rank) {
  const torch::NoGradGuard no_grad;
  std::uint64_t i = 0;
  for (at::Tensor& p : model.parameters())
    p.copy_(numbers(100 * static_cast<std::uint64_t>(rank) + ++i, p.sizes()) * 0.5);
}

inline at::Tensor fixture_input(int step, int rank, int count = kBatch) {
  return numbers(1000 + 8 * static_cast<std::uint64_t>(step) + static_cast<std::uint64_t>(rank), {count, kInputs});
}
inline at::Tensor fixture_target(int step, int rank, int count = kBatch) {
  return numbers(50000 + 8 * static_cast<std::uint64_t>(step) + static_cast<std::uint64_t>(rank), {count, kOutputs});
}

inline at::Tensor squared_error(torch::nn::Module& model, const parallel::Batch& batch) {
  return torch::mse_loss(dynamic_cast<FixtureNetImpl&>(model).forward(batch.at("x")), batch.at("y"));
}

}  // namespace cohort::test
