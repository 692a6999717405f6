#include "models/diffusion/noise_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <torch/types.h>

#include "core/error.h"
#include "models/check_choice.h"
#include "models/diffusion/noise_choices.h"

namespace cohort::models {
namespace {

/// 1 - ᾱ(t2)/ᾱ(t1), at most 0.999, for ᾱ(t) = cos²((t + 0.008)/1.008·π/2): Nichol and Dhariwal 2021, eq. 17.
at::Tensor cosine_betas(int count) {
  const auto alpha_bar = [](double t) {
    const double c = std::cos((t + 0.008) / 1.008 * std::numbers::pi / 2);
    return c * c;
  };
  std::vector<float> betas;
  for (int i = 0; i < count; ++i) {
    const double t1 = static_cast<double>(i) / count, t2 = static_cast<double>(i + 1) / count;
    betas.push_back(static_cast<float>(std::min(1 - alpha_bar(t2) / alpha_bar(t1), 0.999)));
  }
  return torch::tensor(betas);
}

at::Tensor betas_of(const NoiseScheduleSettings& s) {
  if (s.beta_schedule == "linear")
    return at::linspace(s.beta_start, s.beta_end, s.num_train_timesteps, at::TensorOptions(at::kFloat));
  if (s.beta_schedule == "scaled_linear")
    return at::linspace(std::sqrt(s.beta_start), std::sqrt(s.beta_end), s.num_train_timesteps,
                        at::TensorOptions(at::kFloat))
        .square();
  return cosine_betas(s.num_train_timesteps);
}

/// Row `which` of factors (2, B), as one number for each sample of x (B, ...).
at::Tensor row(const at::Tensor& factors, std::int64_t which, const at::Tensor& x) {
  COHORT_CHECK(factors.size(1) == x.size(0), "{} timesteps for {} samples", factors.size(1), x.size(0));
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  return factors[which].view(shape);
}

}  // namespace

const std::vector<std::string>& beta_schedules() {
  static const std::vector<std::string> kAll{"squaredcos_cap_v2", "linear", "scaled_linear"};
  return kAll;
}

const std::vector<std::string>& prediction_types() {
  static const std::vector<std::string> kAll{"epsilon", "sample", "v_prediction"};
  return kAll;
}

void describe(config::Fields& fields, NoiseScheduleSettings& s) {
  fields.add("num_train_timesteps", s.num_train_timesteps, "noise levels in training");
  fields.add_choice("beta_schedule", s.beta_schedule, beta_schedules(), "how the noise grows over the timesteps");
  fields.add("beta_start", s.beta_start, "first beta of the linear schedules");
  fields.add("beta_end", s.beta_end, "last beta of the linear schedules");
  fields.add_choice("prediction_type", s.prediction_type, prediction_types(),
                    "what the network predicts: the noise, the clean actions, or the velocity");
}

void check(const NoiseScheduleSettings& s) {
  COHORT_THROW_UNLESS(s.num_train_timesteps >= 1, "diffusion: num_train_timesteps = {}, but must be at least 1",
                      s.num_train_timesteps);
  check_choice("noise schedule", "beta_schedule", s.beta_schedule, beta_schedules());
  COHORT_THROW_UNLESS(0 < s.beta_start && s.beta_start <= s.beta_end && s.beta_end < 1,
                      "diffusion: beta_start = {} and beta_end = {}, but must be 0 < beta_start <= beta_end < 1",
                      s.beta_start, s.beta_end);
  check_choice("noise schedule", "prediction_type", s.prediction_type, prediction_types());
}

NoiseSchedule::NoiseSchedule(const NoiseScheduleSettings& settings) : settings_(settings) {
  check(settings);
  const at::Tensor product = at::cumprod(1.0 - betas_of(settings), 0).contiguous();
  const float* values = product.const_data_ptr<float>();
  alphas_cumprod_.assign(values, values + product.numel());
}

at::Tensor NoiseSchedule::factors(const at::Tensor& timesteps) const {
  COHORT_CHECK(timesteps.dim() == 1 && timesteps.device().is_cpu() && timesteps.scalar_type() == at::kLong,
               "timesteps must be one int64 per sample on the CPU");
  const at::Tensor in_order = timesteps.contiguous();
  const std::int64_t* t = in_order.const_data_ptr<std::int64_t>();
  at::Tensor factors = at::empty({2, timesteps.size(0)}, at::kFloat);
  float* f = factors.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < timesteps.size(0); ++i) {
    COHORT_CHECK(t[i] >= 0 && t[i] < settings_.num_train_timesteps, "timestep {} of {}", t[i],
                 settings_.num_train_timesteps);
    const float alpha = alphas_cumprod_[static_cast<std::size_t>(t[i])];
    f[i] = std::sqrt(alpha);
    f[timesteps.size(0) + i] = std::sqrt(1.0f - alpha);
  }
  return factors;
}

at::Tensor NoiseSchedule::add_noise_by(const at::Tensor& factors, const at::Tensor& x0, const at::Tensor& noise) {
  return row(factors, 0, x0) * x0 + row(factors, 1, x0) * noise;
}

at::Tensor NoiseSchedule::target_by(const at::Tensor& factors, const at::Tensor& x0, const at::Tensor& noise) const {
  if (settings_.prediction_type == "epsilon") return noise;
  if (settings_.prediction_type == "sample") return x0;
  return row(factors, 0, x0) * noise - row(factors, 1, x0) * x0;
}

at::Tensor NoiseSchedule::add_noise(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& timesteps) const {
  return add_noise_by(factors(timesteps).to(x0.options()), x0, noise);
}

at::Tensor NoiseSchedule::velocity(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& timesteps) const {
  const at::Tensor f = factors(timesteps).to(x0.options());
  return row(f, 0, x0) * noise - row(f, 1, x0) * x0;
}

at::Tensor NoiseSchedule::target(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& timesteps) const {
  return settings_.prediction_type == "v_prediction" ? velocity(x0, noise, timesteps) : target_by({}, x0, noise);
}

}  // namespace cohort::models
