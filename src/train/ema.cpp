#include "train/ema.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/layers.h"
#include "parallel/parameter_shards.h"
#include "weights/foreign_weights.h"

namespace cohort::train {
namespace {

/// The parameters of all BatchNorm layers, LibTorch's and those of models/layers.h.
std::unordered_set<const c10::TensorImpl*> batch_norm_parameters(const torch::nn::Module& module) {
  std::unordered_set<const c10::TensorImpl*> found;
  for (const auto& layer : module.modules(/*include_self=*/true)) {
    if (!layer->as<torch::nn::BatchNorm1dImpl>() && !layer->as<torch::nn::BatchNorm2dImpl>() &&
        !layer->as<torch::nn::BatchNorm3dImpl>() && !layer->as<models::BatchNorm>())
      continue;
    for (const auto& parameter : layer->parameters(/*recurse=*/false)) found.insert(parameter.unsafeGetTensorImpl());
  }
  return found;
}

}  // namespace

void EmaSettings::validate() const {
  COHORT_THROW_UNLESS(counting == "diffusion_policy" || counting == "diffusers",
                      "'{}' is no way to count updates; choose diffusion_policy or diffusers", counting);
  COHORT_THROW_UNLESS(power > 0.0 && inv_gamma > 0.0, "ema: power ({}) and inv_gamma ({}) must be positive", power,
                      inv_gamma);
  COHORT_THROW_UNLESS(min_decay >= 0.0 && min_decay <= max_decay && max_decay <= 1.0,
                      "ema: 0 <= min_decay ({}) <= max_decay ({}) <= 1 must hold", min_decay, max_decay);
  COHORT_THROW_UNLESS(update_after_step >= 0, "ema: update_after_step ({}) must not be negative", update_after_step);
}

void describe(config::Fields& fields, EmaSettings& s) {
  fields.add("enabled", s.enabled, "keep an exponential moving average of the weights; evaluation uses it");
  fields.add_choice(
      "counting", s.counting, {"diffusion_policy", "diffusers"},
      "how updates are counted: as Diffusion Policy, RDT and robomimic do, or as diffusers does (one earlier)");
  fields.add("power", s.power, "exponent of the warm-up: decay = 1 - (1 + updates / inv_gamma)^-power");
  fields.add("inv_gamma", s.inv_gamma, "updates by which the warm-up is stretched");
  fields.add("min_decay", s.min_decay, "lower bound of the decay");
  fields.add("max_decay", s.max_decay, "upper bound of the decay");
  fields.add("update_after_step", s.update_after_step, "updates during which the average is a copy of the weights");
  fields.add("copy_batch_norm", s.copy_batch_norm, "the weights of BatchNorm are copied and not averaged");
}

double ema_decay(const EmaSettings& s, std::int64_t update) {
  const std::int64_t count = update - (s.counting == "diffusers" ? 1 : 2) - s.update_after_step;
  if (count <= 0) return 0.0;
  return std::clamp(1.0 - std::pow(1.0 + static_cast<double>(count) / s.inv_gamma, -s.power), s.min_decay, s.max_decay);
}

Ema::Ema(const torch::nn::Module& module, EmaSettings settings, EmaOrigin origin)
    : module_(module), settings_(std::move(settings)), origin_(std::move(origin)) {
  settings_.validate();
  const at::NoGradGuard no_grad;
  const auto copied =
      settings_.copy_batch_norm ? batch_norm_parameters(module) : std::unordered_set<const c10::TensorImpl*>();
  swaps_ = !origin_.exact && !origin_.shards;
  for (const auto& [name, parameter] : weights::trainable_parameters(module)) {
    if (!parameter.is_floating_point() || copied.count(parameter.unsafeGetTensorImpl())) continue;
    names_.push_back(name);
    parameters_.push_back(parameter);
    averages_.emplace_back();
    if (origin_.shards && !origin_.shards->owns(parameter)) continue;
    own_exact_.push_back(origin_.exact ? origin_.exact(parameter) : parameter);
    averages_.back() = own_exact_.back().detach().clone();
    own_averages_.push_back(averages_.back());
  }
}

void Ema::update() {
  const at::NoGradGuard no_grad;
  ++updates_;
  if (own_averages_.empty()) return;
  const double decay = ema_decay(settings_, updates_);
  if (decay == 0.0) {
    at::_foreach_copy_(own_averages_, own_exact_);
  } else {
    at::_foreach_lerp_(own_averages_, own_exact_, 1.0 - decay);
  }
}

weights::NamedTensors Ema::state() const {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> average_of;
  if (origin_.shards) {
    weights::NamedTensors own;
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (averages_[i].defined()) own.emplace_back(names_[i], averages_[i]);
    const weights::NamedTensors all = origin_.shards->collect(own);
    if (all.empty()) return {};
    const std::unordered_map<std::string, at::Tensor> by_name(all.begin(), all.end());
    for (std::size_t i = 0; i < names_.size(); ++i)
      average_of[parameters_[i].unsafeGetTensorImpl()] = by_name.at(names_[i]);
  } else {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      average_of[parameters_[i].unsafeGetTensorImpl()] = averages_[i];
  }
  weights::NamedTensors state = weights::module_state(module_);
  for (auto& [name, tensor] : state) {
    // A tied weight stands under several names; all of them mean the one average.
    if (const auto found = average_of.find(tensor.unsafeGetTensorImpl()); found != average_of.end())
      tensor = found->second;
  }
  return state;
}

void Ema::load_state(const weights::NamedTensors& state, std::int64_t updates, const std::string& source) {
  const at::NoGradGuard no_grad;
  const std::unordered_map<std::string, at::Tensor> by_name(state.begin(), state.end());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!averages_[i].defined()) continue;
    const auto found = by_name.find(names_[i]);
    COHORT_THROW_UNLESS(found != by_name.end(), "{}: the average of {} is missing", source, names_[i]);
    COHORT_THROW_UNLESS(found->second.sizes() == averages_[i].sizes(),
                        "{}: the average of {} has another shape than the model's parameter", source, names_[i]);
    COHORT_THROW_UNLESS(weights::may_convert(found->second.scalar_type(), averages_[i].scalar_type()), "{}: {}", source,
                        weights::type_difference("the average of " + names_[i], found->second.scalar_type(),
                                                 averages_[i].scalar_type()));
  }
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (averages_[i].defined()) averages_[i].copy_(by_name.at(names_[i]));
  updates_ = updates;
}

void Ema::exchange() {
  const at::NoGradGuard no_grad;
  if (swaps_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor own = parameters_[i].variable_data();
      parameters_[i].set_data(averages_[i]);
      averages_[i] = std::move(own);
    }
    return;
  }
  if (!replaced_.empty()) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].set_data(replaced_[i]);
    replaced_.clear();
    return;
  }
  std::vector<at::Tensor> shown;
  std::vector<int> owners;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    shown.push_back(at::empty_like(parameters_[i], at::MemoryFormat::Preserve));
    if (averages_[i].defined()) shown.back().copy_(averages_[i]);
    if (origin_.shards) owners.push_back(origin_.shards->owner(parameters_[i]));
  }
  if (origin_.shards) origin_.shards->share(shown, owners);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    replaced_.push_back(parameters_[i].variable_data());
    parameters_[i].set_data(shown[i]);
  }
}

std::int64_t Ema::bytes() const {
  std::int64_t bytes = 0;
  for (const at::Tensor& average : own_averages_) bytes += static_cast<std::int64_t>(average.nbytes());
  return bytes;
}

}  // namespace cohort::train
