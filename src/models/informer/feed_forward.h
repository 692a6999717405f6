/// The position-wise part of Informer's layers.
#pragma once
#include <ATen/core/Tensor.h>

#include "models/dropout.h"
#include "models/layers.h"

namespace cohort::models {

/// Where a layer's feed-forward part drops: after the activation, and its result.
struct FeedForwardDropout {
  DropoutLayer inside, result;
};

/// norm(x + dropout(contract(dropout(activation(expand(x)))))): both maps are 1×1 convolutions in weight files.
at::Tensor feed_forward(const at::Tensor& x_BLM, const PointwiseConv& expand, const PointwiseConv& contract,
                        const LayerNorm& norm, bool gelu, const FeedForwardDropout& layers, bool training);

}  // namespace cohort::models
