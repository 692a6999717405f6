/// The layers of the Robotics Diffusion Transformer (Liu et al. 2024, "RDT-1B: a Diffusion Foundation Model for
/// Bimanual Manipulation"), with the weights' names of thu-ml/RoboticsDiffusionTransformer, models/rdt/blocks.py.
///
/// Shape suffixes: B samples, N tokens of states and actions, L tokens of a condition, D width, H heads.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/initialise.h"
#include "models/layers.h"

namespace cohort::models {

/// x / sqrt(var(x) + 1e-6) · weight over the last dimension, var with division by n - 1. The reference's weights were
/// trained with timm 1.0.3, whose RmsNorm divides by the deviation, not by the root of the mean square
/// (timm/layers/fast_norm.py, rms_norm). weight (d).
class DeviationNorm : public torch::nn::Module, public Initialised {
 public:
  explicit DeviationNorm(std::int64_t width);
  at::Tensor forward(const at::Tensor& x) const;
  void initialise(Initialiser& initialiser) override;

 private:
  at::Tensor weight_;
};

/// How linear layers of the transformer begin: xavier_uniform_ weights, biases of zero.
class XavierLinear : public Linear {
 public:
  using Linear::Linear;
  void initialise(Initialiser& initialiser) override;
};

/// A number as a vector: cos and sin of it at 128 falling frequencies, Linear, SiLU, Linear. Weights mlp.0, mlp.2.
class ScalarEmbedder : public torch::nn::Module {
 public:
  explicit ScalarEmbedder(std::int64_t width);
  /// t (B) of any type -> (B, D).
  at::Tensor forward(const at::Tensor& t_B) const;

 private:
  std::shared_ptr<Linear> first_, second_;
};

/// Linear, GELU (tanh), Linear. Weights fc1, fc2.
class RdtMlp : public torch::nn::Module {
 public:
  /// `zero_out`: fc2 begins at zero.
  RdtMlp(std::int64_t width, std::int64_t out, bool zero_out);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
};

/// timm's Attention with normalised queries and keys. Weights qkv, q_norm, k_norm, proj.
class RdtSelfAttention : public torch::nn::Module {
 public:
  RdtSelfAttention(std::int64_t width, std::int64_t heads);
  at::Tensor forward(const at::Tensor& x_BND) const;

 private:
  std::int64_t heads_;
  std::shared_ptr<Linear> qkv_, proj_;
  std::shared_ptr<DeviationNorm> q_norm_, k_norm_;
};

/// Weights q, kv, q_norm, k_norm, proj.
class RdtCrossAttention : public torch::nn::Module {
 public:
  RdtCrossAttention(std::int64_t width, std::int64_t heads);
  /// mask_BL: bool, true where a token is seen; undefined: all are. x may have k samples for each condition, beside each
  /// other, (B·k, N, D): keys and values are then computed once for all k.
  at::Tensor forward(const at::Tensor& x_BND, const at::Tensor& condition_BLD, const at::Tensor& mask_BL) const;

 private:
  std::int64_t heads_;
  std::shared_ptr<Linear> q_, kv_, proj_;
  std::shared_ptr<DeviationNorm> q_norm_, k_norm_;
};

/// Self-attention, attention to one of the conditions, MLP, each on the normalised x and added to it. Weights norm1,
/// attn, cross_attn, norm2, ffn, norm3.
class RdtBlock : public torch::nn::Module {
 public:
  RdtBlock(std::int64_t width, std::int64_t heads);
  at::Tensor forward(const at::Tensor& x_BND, const at::Tensor& condition_BLD, const at::Tensor& mask_BL) const;

 private:
  std::shared_ptr<DeviationNorm> norm1_, norm2_, norm3_;
  std::shared_ptr<RdtSelfAttention> attn_;
  std::shared_ptr<RdtCrossAttention> cross_attn_;
  std::shared_ptr<RdtMlp> ffn_;
};

/// Tables that the positions begin with (get_multimodal_cond_pos_embed): sines in the first half of their columns,
/// cosines in the second, frequencies 10000^(-2i/width), computed in float64, given as float32.
at::Tensor sines_and_cosines(const std::vector<double>& positions, std::int64_t width);
/// (2 + 1 + horizon, width): timestep, control frequency, state, actions. First half: which of the four; second half:
/// which of the actions.
at::Tensor sequence_positions(std::int64_t horizon, std::int64_t width);
/// (history · cameras · patches, width): frame and camera, a part of the columns each; patches of one image are alike.
at::Tensor image_positions(std::int64_t history, std::int64_t cameras, std::int64_t patches, std::int64_t width);
/// (length, width): all tokens alike, as their encoder has placed them already.
at::Tensor language_positions(std::int64_t length, std::int64_t width);

}  // namespace cohort::models
