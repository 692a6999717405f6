#include "rl/environments_of_ranks.h"

#include <algorithm>
#include <string>

#include <torch/types.h>
#include <torch/utils.h>

namespace cohort::rl {
namespace {

/// Tensors whose first dimension is that of the environments; the others are sums over them, or lists.
bool is_of_each(const std::string& name) {
  return name == "envs.episodes" || name == "envs.steps" || name == "envs.actions" || name == "envs.actor_memory" ||
         name == "envs.critic_memory";
}

/// (n, steps, A) with as many steps as the rank has that has most.
at::Tensor as_long_as_the_longest(const at::Tensor& actions, Ranks& ranks) {
  const at::Tensor lengths = at::stack(ranks.gather(torch::tensor({actions.size(1)}, at::kLong)));
  return at::constant_pad_nd(actions, {0, 0, 0, lengths.max().item<std::int64_t>() - actions.size(1)});
}

}  // namespace

weights::NamedTensors gather_environments(const weights::NamedTensors& own, Ranks& ranks) {
  if (ranks.size() == 1) return own;
  weights::NamedTensors all;
  for (const auto& [name, tensor] : own) {
    const at::Tensor gift = name == "envs.actions" ? as_long_as_the_longest(tensor, ranks) : tensor;
    const std::vector<at::Tensor> gifts = ranks.gather(gift);
    all.emplace_back(name, name == "envs.counts" ? at::stack(gifts).sum(0) : at::cat(gifts, 0));
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
