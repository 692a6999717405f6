/// The transformer layers of DETR (Carion et al. 2020) as ACT has them: positions are added to queries and keys of every
/// layer, not to values. torch.nn.MultiheadAttention, weight for weight.
///
/// Shape suffixes: B samples, T queries, S keys, D width.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/dropout.h"
#include "models/layers.h"

namespace cohort::models {

struct ActLayerSettings {
  std::int64_t width = 512, heads = 8, feed_forward = 3200;
  double dropout = 0.1;
  bool pre_norm = false;  ///< layer norms before each part instead of behind it
  bool gelu = false;      ///< instead of ReLU
  /// Matrices begin by Glorot and Bengio's uniform distribution (2010, equation 16) instead of PyTorch's default.
  bool xavier = true;
};

/// A linear layer that begins so, its bias as PyTorch's (or at 0).
class ActLinear : public Linear {
 public:
  ActLinear(std::int64_t in, std::int64_t out, bool xavier, bool zero_bias)
      : Linear(in, out), xavier_(xavier), zero_bias_(zero_bias) {}
  void initialise(Initialiser& initialiser) override;

 private:
  bool xavier_, zero_bias_;
};

/// Weights: in_proj_weight (3D, D), in_proj_bias (3D), out_proj.*.
class ActAttention : public torch::nn::Module, public Initialised {
 public:
  ActAttention(const ActLayerSettings& settings, LayerIds& ids);
  /// mask (B, S) float32 is added to the scores of each key; undefined: none.
  at::Tensor forward(const at::Tensor& queries_BTD, const at::Tensor& keys_BSD, const at::Tensor& values_BSD,
                     const at::Tensor& mask_BS) const;
  void initialise(Initialiser& initialiser) override;

 private:
  std::int64_t width_, heads_;
  DropoutLayer dropout_;
  at::Tensor in_weight_, in_bias_;
  std::shared_ptr<ActLinear> out_;
};

/// Weights: self_attn.*, [multihead_attn.*,] linear1, linear2, norm1, norm2[, norm3].
class ActLayer : public torch::nn::Module {
 public:
  /// `crosses`: it attends to a memory, too.
  ActLayer(const ActLayerSettings& settings, bool crosses, LayerIds& ids);
  /// positions (1 or B, T, D); memory_keys: the memory with its positions.
  at::Tensor forward(const at::Tensor& x_BTD, const at::Tensor& positions, const at::Tensor& mask_BT,
                     const at::Tensor& memory_keys_BSD, const at::Tensor& memory_BSD) const;

 private:
  bool pre_norm_, gelu_;
  std::shared_ptr<ActAttention> self_attention_, cross_attention_;
  std::shared_ptr<ActLinear> expand_, contract_;
  std::shared_ptr<LayerNorm> norm1_, norm2_, norm3_;
  DropoutLayer inside_dropout_, dropout1_, dropout2_, dropout3_;
};

/// Weights: layers.<i>.*[, norm.*].
class ActStack : public torch::nn::Module {
 public:
  ActStack(int layers, const ActLayerSettings& settings, bool crosses, LayerIds& ids);
  at::Tensor forward(at::Tensor x_BTD, const at::Tensor& positions, const at::Tensor& mask_BT,
                     const at::Tensor& memory_BSD, const at::Tensor& memory_positions) const;

 private:
  std::vector<std::shared_ptr<ActLayer>> layers_;
  std::shared_ptr<LayerNorm> norm_;  // of decoders, and where pre_norm is set
};

/// torch.nn.Embedding: weight (rows, width), which begins as N(0, 1).
class ActEmbedding : public torch::nn::Module, public Initialised {
 public:
  ActEmbedding(std::int64_t rows, std::int64_t width)
      : weight_(register_parameter("weight", at::empty({rows, width}))) {}
  const at::Tensor& weight() const { return weight_; }
  void initialise(Initialiser& initialiser) override { initialiser.normal(weight_, 1.0); }

 private:
  at::Tensor weight_;
};

/// A 1x1 convolution over the cells of a feature map: weight (out, in, 1, 1), bias (out).
class ActMapProjection : public torch::nn::Module, public Initialised {
 public:
  ActMapProjection(std::int64_t in, std::int64_t out)
      : weight_(register_parameter("weight", at::empty({out, in, 1, 1}))),
        bias_(register_parameter("bias", at::empty({out}))) {}
  /// (B, in, H, W) -> (B, H·W, out), rows of the map one after another.
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  void initialise(Initialiser& initialiser) override;

 private:
  at::Tensor weight_, bias_;
};

/// (length, width) float32: sine in the even columns and cosine in the odd ones (Vaswani et al. 2017, 3.5), computed in
/// double precision as the reference's table.
at::Tensor act_sinusoid_table(std::int64_t length, std::int64_t width);

/// (1, H·W, width) float32: positions of the cells of a feature map, the first half of the columns for the row, the second
/// for the column; rows and columns count from 1 to 2 pi (DETR's, appendix A.4).
at::Tensor act_map_positions(std::int64_t height, std::int64_t width_of_map, std::int64_t width, at::Device device);

}  // namespace cohort::models
