// Where ranks look after parts of the parameters (parallel.zero): who updates, averages and saves what.
#include <unordered_map>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "train/loop_impl.h"

namespace cohort::train {

/// The groups of the optimizer, of parameters that this process updates.
std::vector<ParameterGroup> TrainLoop::Impl::own_groups() const {
  std::vector<ParameterGroup> groups = parameter_groups(module, settings.optimizer);
  if (shards)
    for (ParameterGroup& group : groups)
      std::erase_if(group.parameters, [&](const auto& parameter) { return !shards->owns(parameter.second); });
  return groups;
}

EmaOrigin TrainLoop::Impl::ema_origin() const {
  EmaOrigin origin{.exact = {}, .shards = shards};
  if (settings.weights == "bf16") origin.exact = [this](const at::Tensor& p) { return optimizer.exact(p); };
  return origin;
}

/// Ranks look after parts of the parameters: what all of them decide on is made of all parts.
void TrainLoop::Impl::prepare_shards() {
  COHORT_THROW_UNLESS(!settings.early_stopping.restores() || !job.checkpoints.empty(),
                      "parallel.zero: the best weights are kept in checkpoints, and this training writes none");
  std::vector<std::string> names;
  std::unordered_map<const c10::TensorImpl*, std::int64_t> place_of;
  for (const auto& [name, parameter] : weights::trainable_parameters(module)) {
    place_of[parameter.unsafeGetTensorImpl()] = static_cast<std::int64_t>(names.size());
    names.push_back(name);
  }
  const auto count = static_cast<std::int64_t>(names.size());
  monitor.complete_norms(
      [this, place_of = std::move(place_of), count](const at::Tensor& own) {
        at::Tensor all = at::zeros({count}, at::kDouble);
        const at::Tensor values = own.to(at::kCPU, at::kDouble);
        const auto& positions = optimizer.gradient_positions();
        for (std::size_t i = 0; i < positions.size(); ++i) {
          const auto place = place_of.at(optimizer.parameters()[positions[i]].second.unsafeGetTensorImpl());
          all.mutable_data_ptr<double>()[place] = values.const_data_ptr<double>()[i];
        }
        shards->sum(all);
        return all.to(own.device(), own.scalar_type());
      },
      std::move(names));
}

/// An overflow in one rank's part of the gradients is everybody's.
void TrainLoop::Impl::agree_on_overflow() {
  at::Tensor found = scaler->found_inf();
  at::Tensor agreed = found.to(at::kCPU, at::kDouble).reshape({1});
  strategy.max_over_ranks(agreed);
  found.copy_(agreed.reshape({}));
}

/// Without the states of parameters that other ranks look after.
weights::NamedTensors TrainLoop::Impl::own_part(const weights::NamedTensors& whole) const {
  if (!shards) return whole;
  std::unordered_set<std::string> others;
  for (const auto& [name, parameter] : weights::trainable_parameters(module))
    if (!shards->owns(parameter)) others.insert("state." + name);
  weights::NamedTensors own;
  for (const auto& [name, tensor] : whole)
    if (!others.contains(name.substr(0, name.rfind('.')))) own.emplace_back(name, tensor);
  return own;
}

}  // namespace cohort::train
