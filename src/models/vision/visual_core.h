/// What turns a camera's image into a feature vector: robomimic's VisualCore, weight for weight.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "core/config.h"
#include "models/initialise.h"

namespace cohort::models {

struct SpatialSoftmaxSettings {
  int num_kp = 32;           ///< keypoints, each an x and a y in [-1, 1]
  double temperature = 1.0;  ///< smaller is sharper
  bool learnable_temperature = false;
};

struct VisualCoreSettings {
  std::string backbone_class = "ResNet50Conv";  ///< ShallowConv, ResNet18Conv, ResNet34Conv, ResNet50Conv
  std::string pool_class = "none";              ///< none: the whole feature map; SpatialSoftmax: keypoints
  SpatialSoftmaxSettings pool;
  std::string norm = "group";   ///< of the trunk: group (diffusion policies), batch (robomimic's behaviour cloning)
  int feature_dimension = 512;  ///< width of the linear layer at the end; 0: no such layer
};

void describe(config::Fields& fields, VisualCoreSettings& settings);
void check(const VisualCoreSettings& settings);

/// Expected image coordinates of learned keypoints (Finn et al. 2016). Weights: nets.* (1x1 convolution), temperature,
/// and the buffers pos_x, pos_y.
class SpatialSoftmax : public torch::nn::Module, public Initialised {
 public:
  SpatialSoftmax(const SpatialSoftmaxSettings& settings, std::int64_t channels, std::int64_t height,
                 std::int64_t width);
  /// (B, channels, height, width) -> (B, num_kp, 2), x before y.
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  void initialise(Initialiser& initialiser) override;

 private:
  std::shared_ptr<torch::nn::Module> convolution_;
  double start_temperature_;
  bool learnable_;
  at::Tensor temperature_, pos_x_, pos_y_;
};

/// Trunk, pooling or flattening, linear layer. Weights: backbone.nets.*, pool.*, nets.<2 or 3>.*. The reference's file
/// has the trunk and the pool twice, under nets.0 and nets.1 as well (weight_names.h).
class VisualCore : public torch::nn::Module {
 public:
  /// image: channels, height, width of what forward() sees (after cropping).
  VisualCore(const VisualCoreSettings& settings, std::array<std::int64_t, 3> image);
  ~VisualCore() override;
  at::Tensor forward(const at::Tensor& x_BCHW) const;  ///< (B, C, H, W) -> (B, width())
  std::int64_t width() const { return width_; }
  const std::array<std::int64_t, 3>& image() const { return image_; }

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
  std::array<std::int64_t, 3> image_;
  std::int64_t width_ = 0;
};

}  // namespace cohort::models
