/// Informer's encoder: attention layers with distilling between them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/informer/attention.h"
#include "models/informer/feed_forward.h"

namespace cohort::models {

struct EncoderSettings {
  AttentionSettings attention;  ///< of each layer; its prob.position is counted up
  std::int64_t d_ff = 2048;
  int layers = 2;
  bool distil = true;
  bool gelu = true;
  bool final_norm = true;
  double dropout = 0.0;
};

/// Self-attention and feed-forward, each x = norm(x + dropout(f(x))). Weights: attention.*, conv1, conv2, norm1, norm2.
class EncoderLayer : public torch::nn::Module {
 public:
  EncoderLayer(const EncoderSettings& settings, LayerIds& ids);
  at::Tensor forward(const at::Tensor& x_BLM) const;  ///< (B, L, d_model) -> the same

 private:
  bool gelu_;
  std::shared_ptr<AttentionLayer> attention_;
  std::shared_ptr<PointwiseConv> expand_, contract_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  DropoutLayer attention_dropout_;
  FeedForwardDropout feed_forward_dropout_;
};

/// Distilling: convolution, batch norm, ELU, maximum of 3 rows at every second one. Weights: downConv, norm.
class DistilLayer : public torch::nn::Module {
 public:
  explicit DistilLayer(std::int64_t channels);
  at::Tensor forward(const at::Tensor& x_BLM) const;  ///< (B, L, d_model) -> (B, ceil(L / 2), d_model)

 private:
  std::shared_ptr<CircularConv> conv_;
  std::shared_ptr<BatchNorm> norm_;
};

/// Weights: attn_layers.*, conv_layers.* (with distil), norm.*. Its layers are segments (models/segment.h).
class Encoder : public torch::nn::Module {
 public:
  Encoder(EncoderSettings settings, LayerIds& ids);
  at::Tensor forward(const at::Tensor& x_BLM) const;

 private:
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  std::vector<std::shared_ptr<DistilLayer>> distils_;
  std::shared_ptr<LayerNorm> norm_;
};

/// InformerStack's: several encoders, the i-th on the last L / 2^i rows, their outputs one after another. Weights:
/// encoders.*.
class EncoderStack : public torch::nn::Module {
 public:
  /// `settings.layers` is replaced by each element of `layers` in turn.
  EncoderStack(EncoderSettings settings, const std::vector<int>& layers, LayerIds& ids);
  at::Tensor forward(const at::Tensor& x_BLM) const;

 private:
  std::vector<std::shared_ptr<Encoder>> encoders_;
};

}  // namespace cohort::models
