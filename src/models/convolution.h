/// Convolutions and group norm with the parameter names and shapes of PyTorch's modules.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/initialise.h"

namespace cohort::models {

struct ConvolutionSettings {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;  ///< in every direction
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = true;
  bool transposed = false;  ///< ConvTranspose: weight (in, out, ...)
};

/// Conv1d, ConvTranspose1d and Conv2d: weight (out, in, kernel[, kernel]), bias (out).
class Convolution : public torch::nn::Module, public Initialised {
 public:
  /// How weights begin.
  enum class Start {
    kFanInUniform,  ///< PyTorch's default for convolutions
    kFanOutNormal,  ///< torchvision's ResNet: N(0, 2 / (out * kernel size))
  };
  /// `dimensions`: 1 for x (B, C, L), 2 for x (B, C, H, W).
  Convolution(int dimensions, const ConvolutionSettings& settings, Start start = Start::kFanInUniform);
  at::Tensor forward(const at::Tensor& x) const;
  /// scale * forward(x) + shift per output channel, (out) each, in the pass of the convolution alone. Without a bias of
  /// its own, and not transposed.
  at::Tensor forward_scaled(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) const;
  void initialise(Initialiser& initialiser) override;
  const at::Tensor& weight() const { return weight_; }

 private:
  ConvolutionSettings settings_;
  std::vector<std::int64_t> stride_, padding_;
  Start start_;
  at::Tensor weight_, bias_;
};

/// weight, bias (channels); eps 1e-5. x (B, C, ...).
class GroupNorm : public torch::nn::Module, public Initialised {
 public:
  /// Throws Error where the groups do not divide the channels.
  GroupNorm(std::int64_t groups, std::int64_t channels);
  at::Tensor forward(const at::Tensor& x) const;
  void initialise(Initialiser& initialiser) override;

 private:
  std::int64_t groups_;
  at::Tensor weight_, bias_;
};

}  // namespace cohort::models
