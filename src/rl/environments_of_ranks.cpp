#include "rl/environments_of_ranks.h"

#include <algorithm>
#include <string>

#include <torch/types.h>
#include <torch/utils.h>

namespace cohort::rl {
namespace {

/// Tensors whose first dimension is that of the environments; the others are sums over them, or lists.
bool is_of_each(const std::string& name) {
  return name != "envs.ended" && name != "envs.counts";
}

}  // namespace

weights::NamedTensors gather_environments(const weights::NamedTensors& own, Ranks& ranks) {
  if (ranks.size() == 1) return own;
  weights::NamedTensors all;
  for (const auto& [name, tensor] : own) {
    const std::vector<at::Tensor> parts = ranks.gather(tensor);
    all.emplace_back(name, name == "envs.counts" ? at::stack(parts).sum(0) : at::cat(parts, 0));
  }
  return all;
}

weights::NamedTensors share_of_environments(const weights::NamedTensors& all, const Shares& shares, Ranks& ranks) {
  if (ranks.size() == 1) return all;
  weights::NamedTensors own;
  for (const auto& [name, tensor] : all) {
    const bool holds = tensor.dim() > 0 && tensor.size(0) == shares.environments * ranks.size();
    if (is_of_each(name) && holds)
      own.emplace_back(name, tensor.narrow(0, shares.first_environment(), shares.environments).contiguous());
    else if (ranks.rank() == 0 || is_of_each(name))
      own.emplace_back(name, tensor);  // of other environments: restore() says so
    else
      own.emplace_back(name, name == "envs.counts" ? at::zeros_like(tensor) : tensor.narrow(0, 0, 0));
  }
  return own;
}

}  // namespace cohort::rl
