// What an optimizer keeps, under names: for checkpoints.
#include <unordered_map>

#include <torch/types.h>

#include "core/error.h"
#include "train/optimizer.h"
#include "train/quantized_state.h"
#include "weights/foreign_weights.h"

namespace cohort::train {
namespace {

constexpr const char* kPrefix = "state.";

}  // namespace

Optimizer::StateNames Optimizer::state_names(const OptimizerSettings& settings) {
  StateNames names;
  if (settings.kind == "sgd") {
    if (settings.momentum != 0.0) names.first = "momentum_buffer";
    return names;
  }
  names = {.first = "exp_avg",
           .second = "exp_avg_sq",
           .largest = settings.amsgrad ? "max_exp_avg_sq" : nullptr,
           .step = "step"};
  if (settings.kind == "adamw8bit") {
    names.first_scale = "exp_avg_absmax";
    names.second_scale = "exp_avg_sq_absmax";
  }
  return names;
}

std::vector<Optimizer::StateSlot> Optimizer::slots_of(Partition& p, std::size_t i) const {
  const StateNames names = state_names(settings_);
  const at::Tensor& like = target(p, i);
  const bool quantized = is_quantized(like);
  const std::vector<std::int64_t> sizes = like.sizes().vec(), blocks{(like.numel() + kStateBlock - 1) / kStateBlock};
  const at::ScalarType moments = quantized ? at::kByte : like.scalar_type();
  std::vector<StateSlot> slots;
  if (names.step) slots.push_back({names.step, &p.steps, {}, at::kFloat});
  if (names.first) slots.push_back({names.first, &p.firsts, sizes, moments});
  if (quantized) slots.push_back({names.first_scale, &p.first_scales, blocks, at::kFloat});
  if (names.second) slots.push_back({names.second, &p.seconds, sizes, moments});
  if (quantized) slots.push_back({names.second_scale, &p.second_scales, blocks, at::kFloat});
  if (names.largest) slots.push_back({names.largest, &p.largests, sizes, moments});
  if (!p.masters.empty()) slots.push_back({"master", &p.masters, sizes, at::kFloat, true});
  return slots;
}

weights::NamedTensors Optimizer::state() const {
  // By position: the order of parameters(), whatever the partitions.
  std::vector<std::pair<const Partition*, std::size_t>> where(parameters_.size());
  for (const auto& partition : partitions_) {
    for (std::size_t i = 0; i < partition.positions.size(); ++i) where[partition.positions[i]] = {&partition, i};
  }
  weights::NamedTensors result;
  for (std::size_t position = 0; position < parameters_.size(); ++position) {
    const auto& [p, i] = where[position];
    for (const StateSlot& slot : slots_of(const_cast<Partition&>(*p), i)) {
      if (const at::Tensor& tensor = (*slot.list)[i]; tensor.defined())
        result.emplace_back(format("{}{}.{}", kPrefix, parameters_[position].first, slot.kind), tensor);
    }
  }
  return result;
}

std::int64_t Optimizer::state_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : state()) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

void Optimizer::load_state(const weights::NamedTensors& state, const std::string& source) {
  const at::NoGradGuard no_grad;
  const std::unordered_map<std::string, at::Tensor> by_name(state.begin(), state.end());
  std::unordered_map<std::string, bool> known;
  // Of each partition's parameters: what was found, in the order of slots_of().
  std::vector<std::vector<std::vector<at::Tensor>>> found(partitions_.size());
  for (std::size_t k = 0; k < partitions_.size(); ++k) {
    Partition& p = partitions_[k];
    for (std::size_t i = 0; i < p.positions.size(); ++i) {
      const std::string& name = parameters_[p.positions[i]].first;
      std::vector<at::Tensor>& own = found[k].emplace_back();
      std::size_t present = 0;
      const std::vector<StateSlot> slots = slots_of(p, i);
      for (const StateSlot& slot : slots) {
        const std::string full = format("{}{}.{}", kPrefix, name, slot.kind);
        known[full] = true;
        const auto item = by_name.find(full);
        own.push_back(item == by_name.end() ? at::Tensor() : item->second);
        if (!own.back().defined()) continue;
        ++present;
        const bool scalar = slot.sizes.empty() && std::string_view(slot.kind) == "step";
        COHORT_THROW_UNLESS(scalar ? own.back().numel() == 1 : own.back().sizes() == at::IntArrayRef(slot.sizes),
                            "{}: {} of parameter {} has another shape than the parameter: it belongs to another model",
                            source, slot.kind, name);
        const at::ScalarType type = own.back().scalar_type();
        const bool fits =
            slot.type == at::kByte || type == at::kByte ? type == slot.type : weights::may_convert(type, slot.type);
        COHORT_THROW_UNLESS(fits, "{}: {}", source,
                            weights::type_difference(format("{} of parameter {}", slot.kind, name), type, slot.type));
      }
      // A parameter that never had a gradient has its master alone.
      const bool master_alone = present == 1 && slots.back().is_master && own.back().defined();
      const bool none = present == 0 && !slots.empty() && !slots.back().is_master;
      COHORT_THROW_UNLESS(present == slots.size() || none || master_alone || slots.empty(),
                          "{}: the optimizer state of parameter {} is incomplete ({} of {} tensors): it was written by "
                          "another kind of optimizer than {}, or with another train.weights",
                          source, name, present, slots.size(), settings_.kind);
    }
  }
  for (const auto& [name, tensor] : state)
    COHORT_THROW_UNLESS(known.contains(name),
                        "{}: '{}' is no state of this model's {} optimizer: another model or optimizer wrote it, or "
                        "one with another train.weights",
                        source, name, settings_.kind);
  for (std::size_t k = 0; k < partitions_.size(); ++k) {
    Partition& p = partitions_[k];
    p.complete = true;
    p.counts_together = !p.steps.empty();
    for (std::size_t i = 0; i < p.positions.size(); ++i) {
      const std::vector<StateSlot> slots = slots_of(p, i);
      bool has_moments = false;
      for (std::size_t s = 0; s < slots.size(); ++s) has_moments |= !slots[s].is_master && found[k][i][s].defined();
      if (has_moments) create_state(p, i, at::empty({}, p.parameters[i].options().dtype(at::kFloat)));
      for (std::size_t s = 0; s < slots.size(); ++s) {
        const at::Tensor& theirs = found[k][i][s];
        if (theirs.defined())
          (*slots[s].list)[i].copy_(theirs.reshape(slots[s].sizes));
        else if (!slots[s].is_master)
          (*slots[s].list)[i] = at::Tensor();
      }
      if (!has_moments) {
        p.complete = p.complete && p.firsts.empty() && p.steps.empty();
        p.counts_together = false;
        continue;
      }
      if (i > 0 && p.counts_together && !at::equal(p.steps[i], p.steps[0])) p.counts_together = false;
    }
    if (p.counts_together) {
      for (auto& step : p.steps) step = p.steps[0];
    }
  }
}

}  // namespace cohort::train
