/// The reverse process: from noise to actions in a few steps. DDPM (Ho et al. 2020), DDIM (Song et al. 2021) and
/// multistep DPM-Solver++ (Lu et al. 2022), step for step those of the diffusers package.
///
///   const NoiseSchedule schedule(noise_settings);
///   const auto sampler = make_sampler(settings, schedule);   // one per run: DPM-Solver++ remembers former steps
///   for (std::size_t i = 0; i < sampler->timesteps().size(); ++i)
///     x = sampler->step(i, network(x, sampler->timesteps()[i]), x, sampler->needs_noise(i) ? noise(i) : at::Tensor());
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "models/diffusion/noise_schedule.h"

namespace cohort::models {

struct SamplerSettings {
  std::string kind = "ddim";                 ///< ddpm, ddim, dpm_solver++
  int num_inference_timesteps = 10;          ///< network calls per action chunk, at most num_train_timesteps
  std::string timestep_spacing = "default";  ///< leading, linspace, trailing; default: leading, DPM-Solver++ linspace
  int steps_offset = 0;                      ///< added to the timesteps of the spacing "leading"

  bool clip_sample = true;         ///< DDPM, DDIM: predicted actions are clamped to ±clip_sample_range
  double clip_sample_range = 1.0;  ///< in normalised actions

  std::string variance_type = "fixed_small";  ///< DDPM: fixed_small, fixed_small_log, fixed_large

  bool set_alpha_to_one = true;           ///< DDIM: the step after the last ends without noise, not at timestep 0's
  double eta = 0.0;                       ///< DDIM: 0 is deterministic, 1 draws as much noise as DDPM
  bool use_clipped_model_output = false;  ///< DDIM: derive the noise again from the clipped sample

  int solver_order = 2;                    ///< DPM-Solver++: 1, 2, 3
  std::string solver_type = "midpoint";    ///< DPM-Solver++, order 2: midpoint, heun
  bool lower_order_final = true;           ///< DPM-Solver++: falling order at the end of fewer than 15 steps
  bool euler_at_final = false;             ///< DPM-Solver++: order 1 in the last step
  bool use_karras_sigmas = false;          ///< DPM-Solver++: noise levels of Karras et al. 2022, eq. 5
  std::string final_sigmas_type = "zero";  ///< DPM-Solver++: the last step ends at noise zero, or at sigma_min
};

void describe(config::Fields& fields, SamplerSettings& settings);

/// Throws Error naming the field, its value and what is allowed.
void check(const SamplerSettings& settings, const NoiseScheduleSettings& schedule);

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// In the order of the steps: falling.
  const std::vector<std::int64_t>& timesteps() const { return timesteps_; }
  /// Whether step i adds noise.
  virtual bool needs_noise(std::size_t i) const = 0;
  /// x before step i and the network's output for it, (B, ...), to x after it. Steps are to be taken in order. `noise`:
  /// standard normal, of x's shape; looked at where needs_noise(i).
  virtual at::Tensor step(std::size_t i, const at::Tensor& model_output, const at::Tensor& x,
                          const at::Tensor& noise) = 0;

 protected:
  std::vector<std::int64_t> timesteps_;
};

/// Throws Error for settings that check() refuses.
std::unique_ptr<Sampler> make_sampler(const SamplerSettings& settings, const NoiseSchedule& schedule);

/// The spacing of timesteps: what timestep_spacing says, or the kind's default.
std::string spacing_of(const SamplerSettings& settings);

/// `count` timesteps below `end`, falling. For a spacing whose last interval ends at 0 (`open`, DPM-Solver++) the
/// timestep 0 itself is left out.
std::vector<std::int64_t> spaced_timesteps(const std::string& spacing, int end, int count, int offset, bool open);

std::unique_ptr<Sampler> make_ddpm(const SamplerSettings& settings, const NoiseSchedule& schedule);
std::unique_ptr<Sampler> make_ddim(const SamplerSettings& settings, const NoiseSchedule& schedule);
std::unique_ptr<Sampler> make_dpm_solver(const SamplerSettings& settings, const NoiseSchedule& schedule);

}  // namespace cohort::models
