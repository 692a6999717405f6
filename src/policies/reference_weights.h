/// Weights of policies under the names that the Python reference gives them (policies/weight_names.h),
/// as whole sets of tensors.
#pragma once
#include <string>

#include "weights/named_tensors.h"

namespace cohort::policies {

/// Our tensors under every key of the reference's state dict, repeated ones included. Throws Error naming `source` and
/// the tensors that `policy` has and `tensors` lack, or that have other shapes or types.
weights::NamedTensors to_reference(const torch::nn::Module& policy, const weights::NamedTensors& tensors,
                                   const std::string& source);

/// The reference's tensors (or ours) under our names, each once, in the policy's order. Throws Error naming `source`
/// and the keys that the policy does not know, its tensors that are missing, or those that have other shapes or types.
weights::NamedTensors from_reference(const torch::nn::Module& policy, const weights::NamedTensors& tensors,
                                     const std::string& source);

/// Copies a torchvision ResNet's convolutions (and norms where the trunk has batch norm) into every image trunk; fc.*
/// is left out. Throws Error naming `source` and a tensor of a trunk that it lacks or that has another shape, and where
/// the policy has no image trunk.
void load_backbones(torch::nn::Module& policy, const weights::NamedTensors& tensors, const std::string& source);

}  // namespace cohort::policies
