#include "train/grad_scaler.h"

#include <map>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"

namespace cohort::train {

void GradScalerSettings::validate() const {
  COHORT_THROW_UNLESS(init_scale > 0.0, "train.scaler.init_scale = {} must be positive", init_scale);
  COHORT_THROW_UNLESS(growth_factor > 1.0, "train.scaler.growth_factor = {} must be above 1", growth_factor);
  COHORT_THROW_UNLESS(backoff_factor > 0.0 && backoff_factor < 1.0,
                      "train.scaler.backoff_factor = {} must lie between 0 and 1", backoff_factor);
  COHORT_THROW_UNLESS(growth_interval >= 1, "train.scaler.growth_interval = {} must be at least 1", growth_interval);
}

void describe(config::Fields& fields, GradScalerSettings& s) {
  fields.add("init_scale", s.init_scale, "fp16: factor of the loss at the start");
  fields.add("growth_factor", s.growth_factor,
             "fp16: growth of the factor after growth_interval steps without overflow");
  fields.add("backoff_factor", s.backoff_factor, "fp16: what is left of the factor after an overflow");
  fields.add("growth_interval", s.growth_interval, "fp16: steps without overflow before the factor grows");
}

GradScaler::GradScaler(const GradScalerSettings& settings, c10::Device device) : settings_(settings) {
  settings_.validate();
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(device);
  scale_ = at::full({}, settings_.init_scale, floats);
  growth_tracker_ = at::zeros({}, floats.dtype(at::kInt));
  found_inf_ = at::zeros({}, floats);
}

void GradScaler::unscale(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  found_inf_.zero_();
  // In double, as PyTorch does: the reciprocal of a scale that is no power of two is rounded once. Metal has no double.
  inverse_ = scale_.device().is_mps() ? scale_.reciprocal() : scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  bool alike = true;
  for (const auto& gradient : gradients) {
    COHORT_THROW_UNLESS(
        gradient.scalar_type() != at::kHalf,
        "a parameter is stored in fp16: keep parameters in float32 and set train.precision=fp16, which computes in "
        "fp16 where that is safe");
    COHORT_CHECK(gradient.device() == scale_.device(), "a gradient lies on {}, the scaler on {}",
                 gradient.device().str(), scale_.device().str());
    alike &= gradient.scalar_type() == gradients.front().scalar_type();
  }
  if (gradients.empty()) return;
  if (alike) {
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, inverse_);
    return;
  }
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const auto& gradient : gradients) by_type[gradient.scalar_type()].push_back(gradient);
  for (const auto& [type, list] : by_type) at::_amp_foreach_non_finite_check_and_unscale_(list, found_inf_, inverse_);
}

void GradScaler::update() {
  const at::NoGradGuard no_grad;
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, settings_.growth_factor, settings_.backoff_factor,
                         settings_.growth_interval);
}

weights::GradScalerState GradScaler::state() const {
  return {.scale = scale_.item<double>(),
          .growth_factor = settings_.growth_factor,
          .backoff_factor = settings_.backoff_factor,
          .growth_interval = settings_.growth_interval,
          .growth_tracker = growth_tracker_.item<std::int64_t>()};
}

void GradScaler::load_state(const weights::GradScalerState& state) {
  const GradScalerSettings settings{.init_scale = state.scale,
                                    .growth_factor = state.growth_factor,
                                    .backoff_factor = state.backoff_factor,
                                    .growth_interval = state.growth_interval};
  settings.validate();
  settings_ = settings;
  scale_.fill_(state.scale);
  growth_tracker_.fill_(state.growth_tracker);
}

}  // namespace cohort::train
