/// Informer's generative decoder: all rows to predict in one pass.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/informer/attention.h"
#include "models/informer/feed_forward.h"

namespace cohort::models {

struct DecoderSettings {
  AttentionSettings self_attention;   ///< of each layer; its prob.position is counted up
  AttentionSettings cross_attention;  ///< of each layer
  std::int64_t d_ff = 2048;
  int layers = 1;
  bool gelu = true;
  double dropout = 0.0;
};

/// Weights: self_attention.*, cross_attention.*, conv1, conv2, norm1, norm2, norm3.
class DecoderLayer : public torch::nn::Module {
 public:
  DecoderLayer(const DecoderSettings& settings, LayerIds& ids);
  /// x (B, L, d_model), cross (B, S, d_model); returns the last `keep` rows.
  at::Tensor forward(const at::Tensor& x_BLM, const at::Tensor& cross_BSM, std::int64_t keep) const;

 private:
  bool gelu_;
  std::shared_ptr<AttentionLayer> self_attention_, cross_attention_;
  std::shared_ptr<PointwiseConv> expand_, contract_;
  std::shared_ptr<LayerNorm> norm1_, norm2_, norm3_;
  DropoutLayer self_dropout_, cross_dropout_;
  FeedForwardDropout feed_forward_dropout_;
};

/// Weights: layers.*, norm.*. Its layers are segments (models/segment.h).
class Decoder : public torch::nn::Module {
 public:
  Decoder(DecoderSettings settings, LayerIds& ids);
  /// Returns the last `keep` rows, (B, keep, d_model): the last layer computes no others.
  at::Tensor forward(const at::Tensor& x_BLM, const at::Tensor& cross_BSM, std::int64_t keep) const;

 private:
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace cohort::models
