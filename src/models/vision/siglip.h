/// SigLIP's vision transformer (Zhai et al. 2023, "Sigmoid Loss for Language Image Pre-Training"): an image as a token
/// per patch, with the weights' names of transformers' SiglipVisionModel. Its pooling head is left out: policies take
/// the tokens.
///
///   SiglipVision siglip({.image_size = 64, .patch_size = 8, .hidden_size = 96, ...});
///   at::Tensor tokens = siglip.forward(siglip_pixels(images, 64));   // (N, 64, 96)
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "core/config.h"

namespace cohort::models {

/// The defaults are siglip-so400m-patch14-384's.
struct SiglipVisionSettings {
  int image_size = 384;  ///< pixels of a side
  int patch_size = 14;   ///< pixels of a side
  int hidden_size = 1152;
  int num_hidden_layers = 27;
  int num_attention_heads = 16;
  int intermediate_size = 4304;  ///< width inside the feed-forward part

  /// Tokens of an image; what is left of a side beyond whole patches is not seen.
  std::int64_t patches() const {
    const std::int64_t side = image_size / patch_size;
    return side * side;
  }
};

void describe(config::Fields& fields, SiglipVisionSettings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const SiglipVisionSettings& settings);

class SiglipVision : public torch::nn::Module {
 public:
  explicit SiglipVision(const SiglipVisionSettings& settings);
  ~SiglipVision() override;
  /// pixels (N, 3, S, S), in [-1, 1] -> (N, patches, hidden_size): last_hidden_state.
  at::Tensor forward(const at::Tensor& pixels) const;
  const SiglipVisionSettings& settings() const { return settings_; }

 private:
  struct Layers;
  SiglipVisionSettings settings_;
  std::unique_ptr<Layers> layers_;
};

/// images (N, 3, H, W) in [0, 1] as the encoder takes them: padded to squares with the middle grey, which is the
/// processor's mean, resized (bicubic, antialiased) to `size`, and brought to [-1, 1].
at::Tensor siglip_pixels(const at::Tensor& images, std::int64_t size);

/// Our name of a tensor of a SigLIP file, with the pooling head and the text encoder's left out (empty).
std::string siglip_vision_name(const std::string& key);

}  // namespace cohort::models
