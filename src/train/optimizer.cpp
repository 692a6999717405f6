#include "train/optimizer.h"

#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "train/quantized_state.h"

namespace cohort::train {
namespace {

/// Bytes of float32 gradients that are made of those of 16 bits at a time.
constexpr std::int64_t kBytesAtATime = std::int64_t{64} << 20;

std::optional<at::Tensor> optional_on(const at::Tensor& tensor, at::Device device) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.to(device, /*non_blocking=*/true);
}

double scaled(double lr, double factor) {
  return lr * factor;
}
at::Tensor scaled(const at::Tensor& lr, double factor) {
  return factor == 1.0 ? lr : lr * factor;
}

void set_rate(AdamW8bitStep& step, double lr) {
  step.lr = lr;
}
void set_rate(AdamW8bitStep& step, const at::Tensor& lr) {
  step.lr_on_device = lr;
}

}  // namespace

double OptimizerSettings::resolved_weight_decay() const {
  return weight_decay.value_or(kind == "adamw" || kind == "adamw8bit" ? 0.01 : 0.0);
}

void OptimizerSettings::validate() const {
  COHORT_THROW_UNLESS(kind == "adamw" || kind == "adam" || kind == "sgd" || kind == "adamw8bit",
                      "'{}' is no optimizer; choose adamw, adam, sgd or adamw8bit", kind);
  COHORT_THROW_UNLESS(!amsgrad || kind != "adamw8bit",
                      "train.amsgrad=true: the largest second moments are not kept in 8 bits; choose "
                      "train.optimizer=adamw");
  COHORT_THROW_UNLESS(beta1 >= 0.0 && beta1 < 1.0, "train.beta1 = {} must lie in [0, 1)", beta1);
  COHORT_THROW_UNLESS(beta2 >= 0.0 && beta2 < 1.0, "train.beta2 = {} must lie in [0, 1)", beta2);
  COHORT_THROW_UNLESS(eps >= 0.0, "train.eps = {} must not be negative", eps);
  COHORT_THROW_UNLESS(resolved_weight_decay() >= 0.0, "train.weight_decay = {} must not be negative",
                      resolved_weight_decay());
  COHORT_THROW_UNLESS(momentum >= 0.0, "train.momentum = {} must not be negative", momentum);
  COHORT_THROW_UNLESS(!nesterov || momentum > 0.0, "nesterov needs a momentum above 0");
}

void describe(config::Fields& fields, OptimizerSettings& s) {
  fields.add_choice(
      "optimizer", s.kind, {"adamw", "adam", "sgd", "adamw8bit"},
      "update rule, on LibTorch's fused kernels; adamw8bit: moments in 8 bits, as bitsandbytes keeps them");
  fields.add("beta1", s.beta1, "adam, adamw: decay of the running mean of gradients");
  fields.add("beta2", s.beta2, "adam, adamw: decay of the running mean of squared gradients");
  fields.add("eps", s.eps, "adam, adamw: added to the denominator");
  fields.add("weight_decay", s.weight_decay,
             "per step and unit of learning rate; unset: 0.01 for adamw and adamw8bit, else 0");
  fields.add("decay_vectors", s.decay_vectors, "false: biases and norm weights (one-dimensional) are not decayed");
  fields.add("amsgrad", s.amsgrad, "adam, adamw: divide by the largest second moment so far");
  fields.add("momentum", s.momentum, "sgd: decay of the momentum buffer");
  fields.add("nesterov", s.nesterov, "sgd: Nesterov's momentum");
}

std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& module, const OptimizerSettings& settings) {
  ParameterGroup decayed{{}, 1.0, settings.resolved_weight_decay()};
  ParameterGroup plain{{}, 1.0, 0.0};
  for (auto& [name, parameter] : weights::trainable_parameters(module)) {
    auto& group = settings.decay_vectors || parameter.dim() > 1 ? decayed : plain;
    group.parameters.emplace_back(name, parameter);
  }
  std::vector<ParameterGroup> groups;
  if (!decayed.parameters.empty()) groups.push_back(std::move(decayed));
  if (!plain.parameters.empty()) groups.push_back(std::move(plain));
  COHORT_THROW_UNLESS(!groups.empty(),
                      "the model has no parameter that requires a gradient: there is nothing to train");
  return groups;
}

Optimizer::Optimizer(std::vector<ParameterGroup> groups, OptimizerSettings settings, bool master_weights)
    : settings_(std::move(settings)), groups_(std::move(groups)) {
  settings_.validate();
  std::unordered_set<std::string> names;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    // std::map: the order of partitions must not depend on addresses.
    std::map<std::tuple<int, int, int>, std::size_t> partition_of;
    for (const auto& [name, parameter] : groups_[g].parameters) {
      COHORT_CHECK(names.insert(name).second, "parameter {} stands in two groups", name);
      const auto key = std::tuple(static_cast<int>(parameter.device().type()), static_cast<int>(parameter.get_device()),
                                  static_cast<int>(parameter.scalar_type()));
      const auto [found, is_new] = partition_of.try_emplace(key, partitions_.size());
      if (is_new) partitions_.emplace_back().group = g;
      auto& partition = partitions_[found->second];
      partition.positions.push_back(parameters_.size());
      partition.parameters.push_back(parameter);
      parameters_.emplace_back(name, parameter);
    }
  }
  const StateNames kinds = state_names(settings_);
  for (auto& partition : partitions_) {
    const std::size_t n = partition.parameters.size();
    if (kinds.first) partition.firsts.resize(n);
    if (kinds.second) partition.seconds.resize(n);
    if (kinds.largest) partition.largests.resize(n);
    if (kinds.step) partition.steps.resize(n);
    if (kinds.first_scale) partition.first_scales.resize(n);
    if (kinds.second_scale) partition.second_scales.resize(n);
    partition.gradients.reserve(n);
    const at::ScalarType type = partition.parameters.front().scalar_type();
    if (!master_weights || (type != at::kBFloat16 && type != at::kHalf)) continue;
    for (const at::Tensor& parameter : partition.parameters) {
      partition.masters.push_back(parameter.detach().to(at::kFloat));
      masters_[parameter.unsafeGetTensorImpl()] = partition.masters.back();
    }
  }
  gradients_.reserve(parameters_.size());
  gradient_positions_.reserve(parameters_.size());
}

const std::vector<at::Tensor>& Optimizer::gradients() {
  gradients_.clear();
  gradient_positions_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].second.grad();
    if (!gradient.defined()) continue;
    gradients_.push_back(gradient);
    gradient_positions_.push_back(i);
  }
  return gradients_;
}

bool Optimizer::is_quantized(const at::Tensor& parameter) const {
  return settings_.kind == "adamw8bit" && parameter.numel() >= kSmallestQuantizedState;
}

void Optimizer::create_state(Partition& p, std::size_t i, const at::Tensor& step) const {
  const at::Tensor& like = target(p, i);
  if (!p.steps.empty()) p.steps[i] = step;
  if (is_quantized(like)) {
    const QuantizedState first = zero_state(like), second = zero_state(like);
    p.firsts[i] = first.codes;
    p.first_scales[i] = first.scales;
    p.seconds[i] = second.codes;
    p.second_scales[i] = second.scales;
    return;
  }
  const auto zeros = [&] { return at::zeros_like(like, at::MemoryFormat::Preserve); };
  // A zero momentum buffer gives the first step buffer = gradient, as PyTorch's first step does, and stays valid when
  // found_inf skips that step.
  if (!p.firsts.empty()) p.firsts[i] = zeros();
  if (!p.seconds.empty()) p.seconds[i] = zeros();
  if (!p.largests.empty()) p.largests[i] = zeros();
}

void Optimizer::append(Partition& to, const Partition& from, std::size_t i) {
  to.group = from.group;
  to.parameters.push_back(from.parameters[i]);
  for (const auto list : {&Partition::firsts, &Partition::seconds, &Partition::largests, &Partition::steps,
                          &Partition::first_scales, &Partition::second_scales, &Partition::masters}) {
    if (!(from.*list).empty()) (to.*list).push_back((from.*list)[i]);
  }
}

at::Tensor Optimizer::exact(const at::Tensor& parameter) const {
  const auto found = masters_.find(parameter.unsafeGetTensorImpl());
  return found == masters_.end() ? parameter : found->second;
}

template <class Rate>
void Optimizer::step_partition(Partition& p, const Rate& lr, const at::Tensor& found_inf,
                               const at::Tensor& grad_scale) {
  p.gradients.clear();
  for (const auto& parameter : p.parameters) {
    if (const at::Tensor& gradient = parameter.grad(); gradient.defined()) p.gradients.push_back(gradient);
  }
  if (p.gradients.empty()) return;
  const bool all_have_gradients = p.gradients.size() == p.parameters.size();
  if (!p.complete && all_have_gradients) {
    // Parameters without state start to count together, unless some have been counting before.
    bool none_has_state = true;
    for (const auto& step : p.steps) none_has_state &= !step.defined();
    const auto new_step = [&] { return at::zeros({}, p.parameters[0].options().dtype(at::kFloat)); };
    const at::Tensor shared = p.steps.empty() ? at::Tensor() : new_step();
    for (std::size_t i = 0; i < p.parameters.size(); ++i) {
      const bool has_state = (!p.firsts.empty() && p.firsts[i].defined()) || (!p.steps.empty() && p.steps[i].defined());
      if (!has_state) create_state(p, i, p.steps.empty() || none_has_state ? shared : new_step());
    }
    p.complete = true;
    p.counts_together = none_has_state && !p.steps.empty();
  }
  if (!all_have_gradients) {
    step_part_of(p, lr, found_inf, grad_scale);
    p.gradients.clear();
    return;
  }
  run_kernel(p, lr, p.counts_together ? at::TensorList(p.steps.data(), 1) : at::TensorList(p.steps), found_inf,
             grad_scale);
  p.gradients.clear();  // a kept reference would keep AccumulateGrad from reusing or stealing buffers
}

template <class Rate>
void Optimizer::step_part_of(Partition& p, const Rate& lr, const at::Tensor& found_inf, const at::Tensor& grad_scale) {
  if (p.counts_together) {
    for (auto& step : p.steps) step = step.clone();
    p.counts_together = false;
  }
  Partition part;
  part.group = p.group;
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    if (!p.parameters[i].grad().defined()) continue;
    const bool has_state = (!p.firsts.empty() && p.firsts[i].defined()) || (!p.steps.empty() && p.steps[i].defined());
    if (!has_state) create_state(p, i, at::zeros({}, p.parameters[i].options().dtype(at::kFloat)));
    append(part, p, i);
    part.gradients.push_back(p.parameters[i].grad());
  }
  run_kernel(part, lr, part.steps, found_inf, grad_scale);
}

template <class Rate>
void Optimizer::run_kernel(const Partition& p, const Rate& lr, at::TensorList distinct_steps,
                           const at::Tensor& found_inf, const at::Tensor& grad_scale) const {
  const Rate group_lr = scaled(lr, groups_[p.group].lr_factor);
  const at::Device device = p.parameters[0].device();
  const auto scale = optional_on(grad_scale, device);
  const auto inf = optional_on(found_inf, device);
  if (!p.steps.empty()) at::_foreach_add_(distinct_steps, 1);
  if (p.masters.empty()) {
    update(p, group_lr, inf, scale);
  } else {
    update_masters(p, group_lr, inf, scale);
  }
  if (inf && !p.steps.empty()) {
    for (const auto& step : distinct_steps) step.sub_(*inf);
  }
}

template <class Rate>
void Optimizer::update(const Partition& p, const Rate& lr, const std::optional<at::Tensor>& inf,
                       const std::optional<at::Tensor>& scale) const {
  const double weight_decay = groups_[p.group].weight_decay;
  if (settings_.kind == "sgd") {
    at::_fused_sgd_(p.parameters, p.gradients, p.firsts, weight_decay, settings_.momentum, lr,
                    /*dampening=*/0.0, settings_.nesterov, /*maximize=*/false, /*is_first_step=*/false, scale, inf);
  } else if (!p.first_scales.empty()) {
    update_8bit(p, lr, inf, scale);
  } else if (settings_.kind == "adam") {
    at::_fused_adam_(p.parameters, p.gradients, p.firsts, p.seconds, p.largests, p.steps, lr, settings_.beta1,
                     settings_.beta2, weight_decay, settings_.eps, settings_.amsgrad, /*maximize=*/false, scale, inf);
  } else {
    at::_fused_adamw_(p.parameters, p.gradients, p.firsts, p.seconds, p.largests, p.steps, lr, settings_.beta1,
                      settings_.beta2, weight_decay, settings_.eps, settings_.amsgrad, /*maximize=*/false, scale, inf);
  }
}

template <class Rate>
void Optimizer::update_8bit(const Partition& p, const Rate& lr, const std::optional<at::Tensor>& inf,
                            const std::optional<at::Tensor>& scale) const {
  Partition small;
  AdamW8bitStep step{.beta1 = settings_.beta1,
                     .beta2 = settings_.beta2,
                     .eps = settings_.eps,
                     .weight_decay = groups_[p.group].weight_decay,
                     .grad_scale = scale,
                     .found_inf = inf};
  set_rate(step, lr);
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    if (!p.first_scales[i].defined()) {
      append(small, p, i);
      small.gradients.push_back(p.gradients[i]);
      continue;
    }
    step.step = p.steps[i];
    adamw_8bit(p.parameters[i], p.gradients[i], {p.firsts[i], p.first_scales[i]}, {p.seconds[i], p.second_scales[i]},
               step);
  }
  small.first_scales.clear();
  if (!small.parameters.empty()) update(small, lr, inf, scale);
}

template <class Rate>
void Optimizer::update_masters(const Partition& p, const Rate& lr, const std::optional<at::Tensor>& inf,
                               const std::optional<at::Tensor>& scale) const {
  for (std::size_t begin = 0, end = 0; begin < p.parameters.size(); begin = end) {
    Partition part;
    std::vector<at::Tensor> rounded;
    for (std::int64_t bytes = 0; end < p.parameters.size() && (end == begin || bytes < kBytesAtATime); ++end) {
      append(part, p, end);
      rounded.push_back(p.parameters[end]);
      part.parameters.back() = p.masters[end];
      part.gradients.push_back(p.gradients[end].to(at::kFloat));
      bytes += 4 * p.parameters[end].numel();
    }
    part.masters.clear();
    update(part, lr, inf, scale);
    at::_foreach_copy_(rounded, part.parameters);
  }
}

void Optimizer::step(double lr, const at::Tensor& found_inf, const at::Tensor& grad_scale) {
  const at::NoGradGuard no_grad;
  for (auto& partition : partitions_) step_partition(partition, lr, found_inf, grad_scale);
}

void Optimizer::step(const at::Tensor& lr, const at::Tensor& found_inf, const at::Tensor& grad_scale) {
  const at::NoGradGuard no_grad;
  for (auto& partition : partitions_) step_partition(partition, lr, found_inf, grad_scale);
}

}  // namespace cohort::train
