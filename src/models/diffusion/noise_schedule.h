/// The forward process of a diffusion model: how much noise each timestep holds (Ho et al. 2020, Nichol and Dhariwal
/// 2021), with the schedules, names and float32 arithmetic of the diffusers package.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"

namespace cohort::models {

struct NoiseScheduleSettings {
  int num_train_timesteps = 100;
  std::string beta_schedule = "squaredcos_cap_v2";  ///< or linear, scaled_linear
  double beta_start = 1e-4;                         ///< of the linear schedules
  double beta_end = 0.02;                           ///< of the linear schedules
  std::string prediction_type = "epsilon";          ///< what the network predicts: epsilon, sample, v_prediction
};

void describe(config::Fields& fields, NoiseScheduleSettings& settings);

/// Throws Error naming the field, its value and what is allowed.
void check(const NoiseScheduleSettings& settings);

class NoiseSchedule {
 public:
  explicit NoiseSchedule(const NoiseScheduleSettings& settings);

  const NoiseScheduleSettings& settings() const { return settings_; }
  /// (num_train_timesteps): the share of the signal's variance that is left at each timestep.
  const std::vector<float>& alphas_cumprod() const { return alphas_cumprod_; }

  /// √ᾱ·x0 + √(1-ᾱ)·noise. x0, noise (B, ...) on one device; timesteps (B) int64 on the CPU, in
  /// [0, num_train_timesteps).
  at::Tensor add_noise(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& timesteps) const;
  /// √ᾱ·noise - √(1-ᾱ)·x0, the "velocity" (Salimans and Ho 2022).
  at::Tensor velocity(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& timesteps) const;
  /// What the network should give under prediction_type.
  at::Tensor target(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& timesteps) const;

  /// (2, B) float32 on the CPU: √ᾱ and √(1-ᾱ) of each timestep.
  at::Tensor factors(const at::Tensor& timesteps) const;
  /// add_noise and target from factors on the device of x0.
  static at::Tensor add_noise_by(const at::Tensor& factors, const at::Tensor& x0, const at::Tensor& noise);
  at::Tensor target_by(const at::Tensor& factors, const at::Tensor& x0, const at::Tensor& noise) const;

 private:
  NoiseScheduleSettings settings_;
  std::vector<float> alphas_cumprod_;
};

}  // namespace cohort::models
