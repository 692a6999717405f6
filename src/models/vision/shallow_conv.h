/// robomimic's ShallowConv: four convolutions after Finn et al. (2016, "Deep spatial autoencoders for visuomotor
/// learning"), an image trunk for small pictures and processors. Weights: 0.*, 2.*, 4.*, 6.*.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/convolution.h"

namespace cohort::models {

class ShallowConv : public torch::nn::Module {
 public:
  static constexpr std::int64_t kOutputChannels = 32;
  explicit ShallowConv(std::int64_t input_channels);
  /// (B, input_channels, H, W) -> (B, 32, ceil(H / 2), ceil(W / 2)).
  at::Tensor forward(const at::Tensor& x_BCHW) const;

 private:
  std::vector<std::shared_ptr<Convolution>> convolutions_;
};

}  // namespace cohort::models
