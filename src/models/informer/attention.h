/// Multi-head attention as Informer's layers use it.
#pragma once
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/dropout.h"
#include "models/informer/key_sampling.h"
#include "models/layers.h"

namespace cohort::models {

struct AttentionSettings {
  std::int64_t d_model = 512;
  std::int64_t n_heads = 8;
  bool prob_sparse = true;  ///< else every query attends to every key
  bool masked = false;      ///< query i sees keys 0..i
  bool mix = false;         ///< hand on (H, L, D) as if it were (L, H·D)
  double dropout = 0.0;     ///< of full attention's weights; the reference drops none of ProbSparse attention's
  ProbSparseLayer prob;     ///< used when prob_sparse
};

/// Weights: query_projection, key_projection, value_projection, out_projection.
class AttentionLayer : public torch::nn::Module {
 public:
  AttentionLayer(const AttentionSettings& settings, LayerIds& ids);

  /// queries_BLM attend to keys_BSM (the same tensor for self-attention). Returns the last `keep` of the L rows,
  /// (B, keep, d_model); what only the other rows would need is not computed.
  at::Tensor forward(const at::Tensor& queries_BLM, const at::Tensor& keys_BSM, std::int64_t keep);

 private:
  at::Tensor full_attention(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD) const;

  AttentionSettings settings_;
  std::int64_t head_width_;
  DropoutLayer dropout_layer_;
  std::shared_ptr<Linear> query_, key_, value_, out_;
};

}  // namespace cohort::models
