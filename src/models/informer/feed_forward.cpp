#include "models/informer/feed_forward.h"

#include <torch/types.h>

namespace cohort::models {

at::Tensor feed_forward(const at::Tensor& x_BLM, const PointwiseConv& expand, const PointwiseConv& contract,
                        const LayerNorm& norm, bool gelu, const FeedForwardDropout& layers, bool training) {
  at::Tensor hidden = expand.forward(x_BLM);
  if (gelu) {
    // Backward of gelu needs its input, not its result: the result may be overwritten. Without a graph, both may.
    hidden = hidden.requires_grad() ? at::gelu(hidden) : at::gelu_(hidden);
    hidden = dropout_(hidden, layers.inside, training);
  } else {
    hidden = dropout(at::relu_(hidden), layers.inside, training);
  }
  return norm.forward(add_dropout(x_BLM, contract.forward(hidden), layers.result, training));
}

}  // namespace cohort::models
