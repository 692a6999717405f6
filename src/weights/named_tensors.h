/// Tensors by name, in an order that is part of the contract: what checkpoints, optimizers and averages exchange.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace cohort::weights {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Trainable parameters of a module under their PyTorch names, in registration order, each tensor once (a tied weight
/// appears under its first name).
NamedTensors trainable_parameters(const torch::nn::Module& module);

/// All parameters and buffers under their PyTorch names, in registration order: parameters first. A tensor that the
/// module registers under several names appears under each of them.
NamedTensors module_state(const torch::nn::Module& module);

}  // namespace cohort::weights
