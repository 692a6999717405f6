/// ProbSparse attention (Zhou et al. 2021, section 3): only the queries whose scores stand out attend; the others take
/// the mean of the values, or under a causal mask their running sum, as the reference does.
///
/// Shape suffixes: B samples, L queries, S keys, H heads, D head width, U sampled keys.
#pragma once
#include <ATen/core/Tensor.h>

#include "models/informer/key_sampling.h"

namespace cohort::models {

/// (B, H, L) float32 without a graph: max over the sampled scores minus their sum / S (the reference divides by all
/// keys, not by the sampled ones). samples_LU int64 on the CPU.
at::Tensor sparsity_measurement(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD, const at::Tensor& samples_LU);

/// The same by the full product of queries and keys: the way on devices for which there is no kernel.
at::Tensor sparsity_measurement_by_product(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD,
                                           const at::Tensor& samples_LU);

enum class HeadOrder {
  kInside,   ///< (B, L, H, D)
  kOutside,  ///< (B, H, L, D): what `mix` hands on
};

/// Attention of q to k and v, masked: query i sees keys 0..i (L = S). The measurement looks at sampled keys behind the
/// mask as well, as the reference's does. Returns the context in `order`, contiguous.
at::Tensor prob_sparse_attention(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD,
                                 bool masked, HeadOrder order, const ProbSparseLayer& layer, bool training);

}  // namespace cohort::models
