/// ResNet-18, -34 and -50 (He et al. 2016) without their last two layers, as image trunks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace cohort::models {

/// How the children of a ResNet are called in weight files.
enum class ResNetNames {
  kTorchvision,  ///< conv1, bn1, layer1, ..., layer4
  kSequential,   ///< 0, 1, 4, ..., 7: robomimic's ResNet18Conv().nets
};

enum class ResNetNorm {
  kGroup,   ///< C/16 groups, so that moving averages of weights mean something (Chi et al. 2023, section III-B)
  kBatch,   ///< torchvision's
  kFrozen,  ///< torchvision's FrozenBatchNorm2d: a batch norm of fixed statistics, scale and shift, all of them buffers
};

class ResNet : public torch::nn::Module {
 public:
  /// depth 18, 34 or 50; throws Error for another one. `input_channels` 3 for colour images.
  ResNet(int depth, std::int64_t input_channels, ResNetNames names, ResNetNorm norm = ResNetNorm::kGroup);
  ~ResNet() override;
  /// (B, input_channels, H, W) -> (B, output_channels(), ceil(H / 32), ceil(W / 32)).
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  /// 512 or 2048.
  std::int64_t output_channels() const;

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
};

}  // namespace cohort::models
