/// Gradient (activation) checkpointing (Chen et al. 2016): a part of a model keeps only its inputs, and is computed
/// again when its gradients are needed.
///
/// The second computation meets the same randomness (RandomContext and LibTorch's generators), autocast state and
/// inputs, so that loss and gradients are those without checkpointing, to the bit. Gradients of parameters leave
/// through the graph that the outer backward pass walks, so that DistributedDataParallel sees each parameter become
/// ready once, as without checkpointing.
#pragma once
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/segment.h"

namespace torch::nn {
class Module;
}

namespace cohort::train {

/// A part of a model. It is called a second time during backward, perhaps in another thread and after
/// gradient_checkpoint() has returned: it captures by value, or what lives as long as the model.
using SegmentFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// Runs `forward` on `inputs` without keeping what it computes.
///   inputs      tensors that depend on earlier parts, or need gradients; undefined ones are passed on
///   parameters  all trainable tensors that `forward` uses otherwise
/// backward throws Error when `forward` used a trainable tensor that is in neither list: its gradient would be lost.
/// A `forward` that changes state of its own (BatchNorm's running averages) must be given with its module, see below.
std::vector<at::Tensor> gradient_checkpoint(const SegmentFunction& forward, const std::vector<at::Tensor>& inputs,
                                            const std::vector<at::Tensor>& parameters);

/// As above for a function of one module: its parameters are listed, and its buffers change once and not twice.
std::vector<at::Tensor> gradient_checkpoint(torch::nn::Module& layer, const SegmentFunction& forward,
                                            const std::vector<at::Tensor>& inputs);

/// A runner for models::SegmentRunnerGuard that checkpoints every segment of a model. What
/// TrainSettings::gradient_checkpointing installs.
models::SegmentRunner checkpointing_runner();

}  // namespace cohort::train
