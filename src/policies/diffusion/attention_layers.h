/// torch.nn.TransformerEncoderLayer and TransformerDecoderLayer with norm_first and GELU, weight for weight.
#pragma once
#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/dropout.h"
#include "models/layers.h"

namespace cohort::models {

/// A linear layer that begins as minGPT's do: N(0, 0.02), bias 0.
class NormalLinear : public Linear {
 public:
  using Linear::Linear;
  void initialise(Initialiser& initialiser) override;
};

/// torch.nn.MultiheadAttention. Weights: in_proj_weight (3E, E), in_proj_bias, out_proj.*.
class MultiheadAttention : public torch::nn::Module, public Initialised {
 public:
  MultiheadAttention(std::int64_t width, std::int64_t heads, double dropout, LayerIds& ids);
  /// queries (B, T, E) attend to keys (B, S, E); mask (T, S) float32 is added to the scores, undefined: none.
  at::Tensor forward(const at::Tensor& queries_BTE, const at::Tensor& keys_BSE, const at::Tensor& mask_TS) const;
  void initialise(Initialiser& initialiser) override;

 private:
  std::int64_t width_, heads_;
  DropoutLayer dropout_layer_;
  at::Tensor in_weight_, in_bias_;
  std::shared_ptr<NormalLinear> out_;
};

/// A layer over x, with cross attention to a memory or without. Weights: self_attn.*, [multihead_attn.*,] linear1,
/// linear2, norm1, norm2[, norm3].
class AttentionBlock : public torch::nn::Module {
 public:
  AttentionBlock(std::int64_t width, std::int64_t heads, double dropout, bool crosses, LayerIds& ids);
  at::Tensor forward(const at::Tensor& x_BTE, const at::Tensor& memory_BSE, const at::Tensor& mask_TT,
                     const at::Tensor& memory_mask_TS) const;

 private:
  std::shared_ptr<MultiheadAttention> self_attention_, cross_attention_;
  std::shared_ptr<NormalLinear> expand_, contract_;
  std::shared_ptr<LayerNorm> norm1_, norm2_, norm3_;
  DropoutLayer self_dropout_, cross_dropout_, inside_dropout_, result_dropout_;
};

}  // namespace cohort::models
