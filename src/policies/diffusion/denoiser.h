/// The network of a diffusion policy: predicts noise (or actions) from noisy actions, the timestep, and what is seen.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace cohort::models {

class Denoiser : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  /// actions (B, T, action width); timesteps (B) int64, on the device of the actions; features_BOF (B, O, F): what each
  /// of the O observations was encoded to. Returns (B, T, action width).
  virtual at::Tensor forward(const at::Tensor& actions_BTA, const at::Tensor& timesteps_B,
                             const at::Tensor& features_BOF) const = 0;
};

/// (B, width) float32: sines and cosines of t at falling frequencies, sines first; exponents i·ln(10000)/(width/2 - 1).
/// Throws Error unless width is even and at least 4.
at::Tensor timestep_embedding(const at::Tensor& timesteps_B, std::int64_t width);

}  // namespace cohort::models
