#include "train/optimizer.h"

#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "policy/foreign_weights.h"

namespace cohort::train {
namespace {

constexpr const char* kPrefix = "state.";

/// PyTorch's names for the states of a kind, in the order firsts, seconds, largests.
struct StateNames {
  const char* first = nullptr;
  const char* second = nullptr;
  const char* largest = nullptr;
  const char* step = nullptr;
};

StateNames state_names(const OptimizerSettings& settings) {
  if (settings.kind == "sgd")
    return {settings.momentum != 0.0 ? "momentum_buffer" : nullptr, nullptr, nullptr, nullptr};
  return {"exp_avg", "exp_avg_sq", settings.amsgrad ? "max_exp_avg_sq" : nullptr, "step"};
}

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

}  // namespace

double OptimizerSettings::resolved_weight_decay() const {
  return weight_decay.value_or(kind == "adamw" ? 0.01 : 0.0);
}

void OptimizerSettings::validate() const {
  COHORT_THROW_UNLESS(kind == "adamw" || kind == "adam" || kind == "sgd",
                      "'{}' is no optimizer; choose adamw, adam or sgd", kind);
  COHORT_THROW_UNLESS(beta1 >= 0.0 && beta1 < 1.0, "train.beta1 = {} must lie in [0, 1)", beta1);
  COHORT_THROW_UNLESS(beta2 >= 0.0 && beta2 < 1.0, "train.beta2 = {} must lie in [0, 1)", beta2);
  COHORT_THROW_UNLESS(eps >= 0.0, "train.eps = {} must not be negative", eps);
  COHORT_THROW_UNLESS(resolved_weight_decay() >= 0.0, "train.weight_decay = {} must not be negative",
                      resolved_weight_decay());
  COHORT_THROW_UNLESS(momentum >= 0.0, "train.momentum = {} must not be negative", momentum);
  COHORT_THROW_UNLESS(!nesterov || momentum > 0.0, "nesterov needs a momentum above 0");
}

void describe(config::Fields& fields, OptimizerSettings& s) {
  fields.add_choice("optimizer", s.kind, {"adamw", "adam", "sgd"}, "update rule, on LibTorch's fused kernels");
  fields.add("beta1", s.beta1, "adam, adamw: decay of the running mean of gradients");
  fields.add("beta2", s.beta2, "adam, adamw: decay of the running mean of squared gradients");
  fields.add("eps", s.eps, "adam, adamw: added to the denominator");
  fields.add("weight_decay", s.weight_decay, "per step and unit of learning rate; unset: 0.01 for adamw, else 0");
  fields.add("decay_vectors", s.decay_vectors, "false: biases and norm weights (one-dimensional) are not decayed");
  fields.add("amsgrad", s.amsgrad, "adam, adamw: divide by the largest second moment so far");
  fields.add("momentum", s.momentum, "sgd: decay of the momentum buffer");
  fields.add("nesterov", s.nesterov, "sgd: Nesterov's momentum");
}

std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& module, const OptimizerSettings& settings) {
  ParameterGroup decayed{{}, 1.0, settings.resolved_weight_decay()};
  ParameterGroup plain{{}, 1.0, 0.0};
  for (auto& [name, parameter] : policy::trainable_parameters(module)) {
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

Optimizer::Optimizer(std::vector<ParameterGroup> groups, OptimizerSettings settings)
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
    partition.gradients.reserve(n);
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

void Optimizer::create_state(Partition& p, std::size_t i, const at::Tensor& step) const {
  const auto zeros = [&] { return at::zeros_like(p.parameters[i], at::MemoryFormat::Preserve); };
  // A zero momentum buffer gives the first step buffer = gradient, as PyTorch's first step does, and stays valid when
  // found_inf skips that step.
  if (!p.firsts.empty()) p.firsts[i] = zeros();
  if (!p.seconds.empty()) p.seconds[i] = zeros();
  if (!p.largests.empty()) p.largests[i] = zeros();
  if (!p.steps.empty()) p.steps[i] = step;
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
    part.parameters.push_back(p.parameters[i]);
    part.gradients.push_back(p.parameters[i].grad());
    if (!p.firsts.empty()) part.firsts.push_back(p.firsts[i]);
    if (!p.seconds.empty()) part.seconds.push_back(p.seconds[i]);
    if (!p.largests.empty()) part.largests.push_back(p.largests[i]);
    if (!p.steps.empty()) part.steps.push_back(p.steps[i]);
  }
  run_kernel(part, lr, part.steps, found_inf, grad_scale);
}

template <class Rate>
void Optimizer::run_kernel(const Partition& p, const Rate& lr, at::TensorList distinct_steps,
                           const at::Tensor& found_inf, const at::Tensor& grad_scale) const {
  const auto& group = groups_[p.group];
  const Rate group_lr = scaled(lr, group.lr_factor);
  const at::Device device = p.parameters[0].device();
  const auto scale = optional_on(grad_scale, device);
  const auto inf = optional_on(found_inf, device);
  if (settings_.kind == "sgd") {
    at::_fused_sgd_(p.parameters, p.gradients, p.firsts, group.weight_decay, settings_.momentum, group_lr,
                    /*dampening=*/0.0, settings_.nesterov, /*maximize=*/false, /*is_first_step=*/false, scale, inf);
    return;
  }
  at::_foreach_add_(distinct_steps, 1);
  if (settings_.kind == "adamw") {
    at::_fused_adamw_(p.parameters, p.gradients, p.firsts, p.seconds, p.largests, p.steps, group_lr, settings_.beta1,
                      settings_.beta2, group.weight_decay, settings_.eps, settings_.amsgrad, /*maximize=*/false, scale,
                      inf);
  } else {
    at::_fused_adam_(p.parameters, p.gradients, p.firsts, p.seconds, p.largests, p.steps, group_lr, settings_.beta1,
                     settings_.beta2, group.weight_decay, settings_.eps, settings_.amsgrad, /*maximize=*/false, scale,
                     inf);
  }
  if (inf) {
    for (const auto& step : distinct_steps) step.sub_(*inf);
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

policy::NamedTensors Optimizer::state() const {
  const StateNames kinds = state_names(settings_);
  // By position: the order of parameters(), whatever the partitions.
  std::vector<std::pair<const Partition*, std::size_t>> where(parameters_.size());
  for (const auto& partition : partitions_) {
    for (std::size_t i = 0; i < partition.positions.size(); ++i) where[partition.positions[i]] = {&partition, i};
  }
  policy::NamedTensors result;
  for (std::size_t position = 0; position < parameters_.size(); ++position) {
    const auto& [p, i] = where[position];
    const auto add = [&, &p = p, i = i](const char* kind, const std::vector<at::Tensor>& list) {
      if (kind && list[i].defined())
        result.emplace_back(format("{}{}.{}", kPrefix, parameters_[position].first, kind), list[i]);
    };
    add(kinds.step, p->steps);
    add(kinds.first, p->firsts);
    add(kinds.second, p->seconds);
    add(kinds.largest, p->largests);
  }
  return result;
}

void Optimizer::load_state(const policy::NamedTensors& state, const std::string& source) {
  const at::NoGradGuard no_grad;
  std::unordered_map<std::string, at::Tensor> by_name(state.begin(), state.end());
  const StateNames kinds = state_names(settings_);
  struct Found {
    at::Tensor step, first, second, largest;
  };
  std::vector<Found> found(parameters_.size());
  std::size_t used = 0;
  for (std::size_t position = 0; position < parameters_.size(); ++position) {
    const auto& [name, parameter] = parameters_[position];
    int present = 0, wanted = 0;
    const auto take = [&, &name = name, &parameter = parameter](const char* kind, at::Tensor& target, bool scalar) {
      if (!kind) return;
      ++wanted;
      const auto item = by_name.find(format("{}{}.{}", kPrefix, name, kind));
      if (item == by_name.end()) return;
      ++present;
      ++used;
      COHORT_THROW_UNLESS(scalar ? item->second.numel() == 1 : item->second.sizes() == parameter.sizes(),
                          "{}: {} of parameter {} has another shape than the parameter: it belongs to another model",
                          source, kind, name);
      COHORT_THROW_UNLESS(
          policy::may_convert(item->second.scalar_type(), scalar ? at::kFloat : parameter.scalar_type()), "{}: {}",
          source,
          policy::type_difference(format("{} of parameter {}", kind, name), item->second.scalar_type(),
                                  scalar ? at::kFloat : parameter.scalar_type()));
      target = item->second;
    };
    take(kinds.step, found[position].step, true);
    take(kinds.first, found[position].first, false);
    take(kinds.second, found[position].second, false);
    take(kinds.largest, found[position].largest, false);
    COHORT_THROW_UNLESS(
        present == 0 || present == wanted,
        "{}: the optimizer state of parameter {} is incomplete ({} of {} tensors): it was written by another "
        "kind of optimizer than {}",
        source, name, present, wanted, settings_.kind);
  }
  if (used != by_name.size()) {
    for (const auto& [name, tensor] : state) {
      const bool known = [&, &name = name] {
        for (const auto& [parameter, unused] : parameters_) {
          for (const char* kind : {kinds.step, kinds.first, kinds.second, kinds.largest}) {
            if (kind && name == format("{}{}.{}", kPrefix, parameter, kind)) return true;
          }
        }
        return false;
      }();
      COHORT_THROW_UNLESS(known,
                          "{}: '{}' is no state of this model's {} optimizer: another model or optimizer wrote it",
                          source, name, settings_.kind);
    }
  }
  for (auto& p : partitions_) {
    p.complete = true;
    p.counts_together = !p.steps.empty();
    for (std::size_t i = 0; i < p.positions.size(); ++i) {
      const Found& f = found[p.positions[i]];
      const bool any = f.step.defined() || f.first.defined();
      if (!any) {
        const auto forget = [i](std::vector<at::Tensor>& list) {
          if (!list.empty()) list[i] = at::Tensor();
        };
        forget(p.firsts);
        forget(p.seconds);
        forget(p.largests);
        forget(p.steps);
        p.complete = p.firsts.empty() && p.steps.empty();
        p.counts_together = false;
        continue;
      }
      create_state(p, i, f.step.defined() ? at::empty({}, p.parameters[i].options().dtype(at::kFloat)) : at::Tensor());
      if (f.step.defined()) p.steps[i].copy_(f.step.reshape({}));
      if (f.first.defined()) p.firsts[i].copy_(f.first);
      if (f.second.defined()) p.seconds[i].copy_(f.second);
      if (f.largest.defined()) p.largests[i].copy_(f.largest);
      if (i > 0 && p.counts_together && !at::equal(p.steps[i], p.steps[0])) p.counts_together = false;
    }
    if (p.counts_together) {
      for (auto& step : p.steps) step = p.steps[0];
    }
  }
}

}  // namespace cohort::train
