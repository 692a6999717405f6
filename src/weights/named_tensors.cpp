#include "weights/named_tensors.h"

#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace cohort::weights {

NamedTensors trainable_parameters(const torch::nn::Module& module) {
  NamedTensors result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters(/*recurse=*/true)) {
    if (item.value().defined() && item.value().requires_grad() &&
        seen.insert(item.value().unsafeGetTensorImpl()).second) {
      result.emplace_back(item.key(), item.value());
    }
  }
  return result;
}

NamedTensors module_state(const torch::nn::Module& module) {
  NamedTensors result;
  for (const auto& item : module.named_parameters(/*recurse=*/true)) {
    if (item.value().defined()) result.emplace_back(item.key(), item.value());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/true)) {
    if (item.value().defined()) result.emplace_back(item.key(), item.value());
  }
  return result;
}

}  // namespace cohort::weights
