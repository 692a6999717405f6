/// Gradient checkpointing: a part of a model forgets its intermediate results in the forward pass and computes them
/// again in the backward pass (Chen, Xu, Zhang, Guestrin, "Training deep nets with sublinear memory cost", 2016). It
/// trades about a third more arithmetic for memory.
#pragma once
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cohort::train {

/// A part of a model: tensors in, tensors out. It must be the same function each time it is called.
using Segment = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// Runs segment(inputs) without keeping its graph; backward runs it again, under the autocast state, the RandomContext
/// and the ATen generator state of the first time, so that losses and gradients are those of segment(inputs) to the
/// last bit. Parameters inside the segment get their gradients through the recomputation. Without grad mode it just
/// calls the segment. Throws Error in backward when the recomputation yields another number of tensors or other shapes
/// than the first time.
std::vector<at::Tensor> checkpoint(const Segment& segment, const std::vector<at::Tensor>& inputs);

/// For a segment of one tensor to one tensor, such as a layer of a stack.
at::Tensor checkpoint(const std::function<at::Tensor(const at::Tensor&)>& segment, const at::Tensor& input);

}  // namespace cohort::train
