// DDPM and DDIM: both predict the clean sample, and go from there to the noise level of the next timestep.
#include <algorithm>
#include <cmath>

#include <torch/types.h>

#include "core/error.h"
#include "models/diffusion/prediction.h"
#include "models/diffusion/sampler.h"

namespace cohort::models {

at::Tensor clean_sample(const std::string& prediction_type, const at::Tensor& model_output, const at::Tensor& x,
                        SignalAndNoise level) {
  if (prediction_type == "epsilon") return (x - level.sigma * model_output) / level.alpha;
  if (prediction_type == "sample") return model_output;
  return level.alpha * x - level.sigma * model_output;
}

at::Tensor noise_in(const std::string& prediction_type, const at::Tensor& model_output, const at::Tensor& x,
                    const at::Tensor& clean, SignalAndNoise level) {
  if (prediction_type == "epsilon") return model_output;
  if (prediction_type == "sample") return (x - level.alpha * clean) / level.sigma;
  return level.alpha * model_output + level.sigma * x;
}

namespace {

/// What DDPM and DDIM share.
class AncestralSampler : public Sampler {
 protected:
  AncestralSampler(const SamplerSettings& settings, const NoiseSchedule& schedule)
      : settings_(settings), prediction_type_(schedule.settings().prediction_type), alphas_(schedule.alphas_cumprod()) {
    timesteps_ = spaced_timesteps(spacing_of(settings), schedule.settings().num_train_timesteps,
                                  settings.num_inference_timesteps, settings.steps_offset, false);
  }

  float alpha_at(std::int64_t timestep, float beyond) const {
    return timestep >= 0 ? alphas_[static_cast<std::size_t>(timestep)] : beyond;
  }

  at::Tensor clipped(const at::Tensor& clean) const {
    return settings_.clip_sample ? clean.clamp(-settings_.clip_sample_range, settings_.clip_sample_range) : clean;
  }

  SamplerSettings settings_;
  std::string prediction_type_;
  std::vector<float> alphas_;
};

class Ddpm : public AncestralSampler {
 public:
  Ddpm(const SamplerSettings& settings, const NoiseSchedule& schedule) : AncestralSampler(settings, schedule) {}

  bool needs_noise(std::size_t i) const override { return timesteps_[i] > 0; }

  at::Tensor step(std::size_t i, const at::Tensor& model_output, const at::Tensor& x,
                  const at::Tensor& noise) override {
    const std::int64_t t = timesteps_[i];
    // To the next timestep, which the spacings "linspace" and "trailing" do not place at equal distances.
    const std::int64_t next = i + 1 < timesteps_.size() ? timesteps_[i + 1] : -1;
    const float alpha = alpha_at(t, 1.0f), alpha_prev = alpha_at(next, 1.0f);
    const float beta = 1.0f - alpha, beta_prev = 1.0f - alpha_prev;
    const float ratio = alpha / alpha_prev, current_beta = 1.0f - ratio;
    const at::Tensor clean =
        clipped(clean_sample(prediction_type_, model_output, x, {std::sqrt(alpha), std::sqrt(beta)}));
    // Ho et al. 2020, eq. 7.
    at::Tensor mean = (std::sqrt(alpha_prev) * current_beta / beta) * clean + (std::sqrt(ratio) * beta_prev / beta) * x;
    if (t == 0) return mean;
    COHORT_CHECK(noise.defined() && noise.sizes() == x.sizes(), "DDPM's step {} needs noise of the sample's shape", i);
    const float variance =
        settings_.variance_type == "fixed_large" ? current_beta : std::max(beta_prev / beta * current_beta, 1e-20f);
    // fixed_small_log takes the logarithm and back: the same deviation.
    return mean + std::sqrt(variance) * noise;
  }
};

class Ddim : public AncestralSampler {
 public:
  Ddim(const SamplerSettings& settings, const NoiseSchedule& schedule)
      : AncestralSampler(settings, schedule),
        interval_(schedule.settings().num_train_timesteps / settings.num_inference_timesteps),
        final_alpha_(settings.set_alpha_to_one ? 1.0f : alphas_[0]) {}

  bool needs_noise(std::size_t) const override { return settings_.eta > 0; }

  at::Tensor step(std::size_t i, const at::Tensor& model_output, const at::Tensor& x,
                  const at::Tensor& noise) override {
    const std::int64_t t = timesteps_[i];
    // The same interval whatever the spacing: here diffusers does not look at the next timestep.
    const float alpha = alpha_at(t, final_alpha_), alpha_prev = alpha_at(t - interval_, final_alpha_);
    const SignalAndNoise level{std::sqrt(alpha), std::sqrt(1.0f - alpha)};
    at::Tensor clean = clean_sample(prediction_type_, model_output, x, level);
    at::Tensor epsilon = noise_in(prediction_type_, model_output, x, clean, level);
    clean = clipped(clean);
    if (settings_.use_clipped_model_output) epsilon = (x - level.alpha * clean) / level.sigma;
    // Song et al. 2021, eq. 12 and 16.
    const float variance = (1.0f - alpha_prev) / (1.0f - alpha) * (1.0f - alpha / alpha_prev);
    const float deviation = static_cast<float>(settings_.eta) * std::sqrt(variance);
    at::Tensor next = std::sqrt(alpha_prev) * clean + std::sqrt(1.0f - alpha_prev - deviation * deviation) * epsilon;
    if (settings_.eta == 0) return next;
    COHORT_CHECK(noise.defined() && noise.sizes() == x.sizes(), "DDIM's step {} needs noise of the sample's shape", i);
    return next + deviation * noise;
  }

 private:
  std::int64_t interval_;  // timesteps per step
  float final_alpha_;
};

}  // namespace

std::unique_ptr<Sampler> make_ddpm(const SamplerSettings& settings, const NoiseSchedule& schedule) {
  return std::make_unique<Ddpm>(settings, schedule);
}

std::unique_ptr<Sampler> make_ddim(const SamplerSettings& settings, const NoiseSchedule& schedule) {
  return std::make_unique<Ddim>(settings, schedule);
}

}  // namespace cohort::models
