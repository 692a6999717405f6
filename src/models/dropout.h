/// Dropout whose mask belongs to the sample: keyed by (seed, step, layer, global sample id, element) through Philox
/// (models/dropout_mask.h), not by a generator's state. A sample meets the same mask whichever rank, replica or
/// position in a batch works on it, and a forward pass that is recomputed (gradient checkpointing) meets it again.
///
/// The mask is not stored: backward draws it once more, which on a CPU takes less time than writing and reading it.
/// Probabilities are multiples of 1/65536 (16 random bits per element); kept elements are scaled by one over the
/// probability that results. float32, bfloat16 and float16; tensors are (n_sample, ...).
///
/// On a CUDA device the same masks come from cuda/dropout.cu. A build without nvcc, and any other device, uses ATen's
/// generator, seeded by (seed, step, layer, first sample id), and says once in the log that masks then depend on how a
/// batch is split.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cohort::models {

/// Hands out the ids that tell the random layers of one model apart; in the order of construction.
class LayerIds {
 public:
  std::uint32_t next() { return next_++; }

 private:
  std::uint32_t next_ = 0;
};

/// One place of a model where dropout is applied.
struct DropoutLayer {
  double p = 0.0;        ///< probability of dropping an element, [0, 1]
  std::uint32_t id = 0;  ///< unique within the model
};

/// dropout(x). Identity where !training or p == 0. Throws Error where training and no RandomContext is set, or where
/// its sample ids are not as many as x has samples.
at::Tensor dropout(const at::Tensor& x, const DropoutLayer& layer, bool training);

/// The same in place (x contiguous). For the output of an operation whose backward does not need that output.
at::Tensor dropout_(at::Tensor x, const DropoutLayer& layer, bool training);

/// residual + dropout(x) in one pass; both of one shape. The result has the wider of the two types.
at::Tensor add_dropout(const at::Tensor& residual, const at::Tensor& x, const DropoutLayer& layer, bool training);

}  // namespace cohort::models
