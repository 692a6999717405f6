#include "models/initialise.h"

#include <cmath>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"

namespace cohort::models {
namespace {

/// Fills a float32 CPU tensor and copies it to the parameter.
template <class Fill>
void fill(const at::Tensor& parameter, const Fill& numbers) {
  const at::NoGradGuard no_grad;
  at::Tensor values = at::empty(parameter.sizes(), at::kFloat);
  numbers(values.mutable_data_ptr<float>(), static_cast<std::uint64_t>(values.numel()));
  at::Tensor target = parameter;
  target.copy_(values);
}

}  // namespace

std::int64_t fan_in_of(const at::Tensor& weight) {
  COHORT_CHECK(weight.dim() >= 2, "fan_in is defined for weights (out, in, ...), this one has {} dimensions",
               weight.dim());
  return weight.numel() / weight.size(0);
}

Initialiser::Initialiser(const torch::nn::Module& model, std::uint64_t seed) : seed_(seed) {
  for (const auto& parameter : model.named_parameters())
    position_.emplace(parameter.value().unsafeGetTensorImpl(), position_.size());
}

std::uint64_t Initialiser::position(const at::Tensor& parameter) {
  const auto found = position_.find(parameter.unsafeGetTensorImpl());
  COHORT_CHECK(found != position_.end(), "a tensor that is no parameter of this model cannot be initialised with it");
  ++drawn_[found->first];
  return found->second;
}

void Initialiser::uniform(const at::Tensor& parameter, double bound) {
  const RandomStream stream(seed_, RandomPurpose::kModelInit, position(parameter), 0);
  fill(parameter, [&](float* out, std::uint64_t n) {
    // The same numbers as stream.uniform(i), four to a Philox call.
    const auto width = static_cast<float>(2.0 * bound);
    const auto low = static_cast<float>(-bound);
    for (std::uint64_t i = 0; i < n; i += 4) {
      const Philox4 word = stream.at(i / 4);
      for (std::uint64_t j = 0; j < 4 && i + j < n; ++j)
        out[i + j] = low + width * (static_cast<float>(word.v[j] >> 8) * (1.0f / 16777216.0f));
    }
  });
}

void Initialiser::normal(const at::Tensor& parameter, double deviation) {
  const RandomStream stream(seed_, RandomPurpose::kModelInit, position(parameter), 0);
  fill(parameter, [&](float* out, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(deviation * stream.normal(i));
  });
}

void Initialiser::constant(const at::Tensor& parameter, double value) {
  position(parameter);
  const at::NoGradGuard no_grad;
  at::Tensor target = parameter;
  target.fill_(value);
}

void Initialiser::keep(const at::Tensor& parameter) {
  position(parameter);
}

void Initialiser::fan_in_uniform(const at::Tensor& weight) {
  uniform(weight, 1.0 / std::sqrt(static_cast<double>(fan_in_of(weight))));
}

void Initialiser::fan_in_uniform_bias(const at::Tensor& bias, const at::Tensor& weight) {
  uniform(bias, 1.0 / std::sqrt(static_cast<double>(fan_in_of(weight))));
}

void Initialiser::kaiming_normal(const at::Tensor& weight) {
  normal(weight, std::sqrt(2.0 / static_cast<double>(fan_in_of(weight))));
}

void initialise(torch::nn::Module& model, std::uint64_t seed) {
  Initialiser initialiser(model, seed);
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto* own = dynamic_cast<Initialised*>(module.get())) own->initialise(initialiser);
  if (auto* own = dynamic_cast<Initialised*>(&model)) own->initialise(initialiser);
  for (const auto& parameter : model.named_parameters()) {
    const auto drawn = initialiser.drawn_.find(parameter.value().unsafeGetTensorImpl());
    COHORT_CHECK(drawn != initialiser.drawn_.end(), "parameter {} has no rule for its initial values", parameter.key());
    COHORT_CHECK(drawn->second == 1, "parameter {} was initialised {} times", parameter.key(), drawn->second);
  }
}

}  // namespace cohort::models
