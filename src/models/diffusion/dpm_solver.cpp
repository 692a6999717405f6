// DPM-Solver++ (Lu et al. 2022, "DPM-Solver++: Fast Solver for Guided Sampling of Diffusion Probabilistic Models"),
// multistep, on the integral of the predicted clean sample. Orders 1 to 3.
#include <algorithm>
#include <cmath>
#include <limits>

#include <torch/types.h>

#include "models/diffusion/prediction.h"
#include "models/diffusion/sampler.h"

namespace cohort::models {
namespace {

/// Noise levels sigma/alpha of the training timesteps, rising.
std::vector<float> training_sigmas(const NoiseSchedule& schedule) {
  std::vector<float> sigmas;
  for (const float alpha : schedule.alphas_cumprod()) sigmas.push_back(std::sqrt((1.0f - alpha) / alpha));
  return sigmas;
}

/// Karras et al. 2022, eq. 5, with rho 7: `count` levels from the largest to the smallest.
std::vector<double> karras_sigmas(const std::vector<float>& sigmas, int count) {
  constexpr double kRho = 7.0;
  const double low = std::pow(static_cast<double>(sigmas.front()), 1 / kRho);
  const double high = std::pow(static_cast<double>(sigmas.back()), 1 / kRho);
  std::vector<double> levels;
  for (int i = 0; i < count; ++i) {
    const double ramp = count > 1 ? static_cast<double>(i) / (count - 1) : 0.0;
    levels.push_back(std::pow(high + ramp * (low - high), kRho));
  }
  return levels;
}

/// The timestep, with fraction, at which training had this noise level: linear between the logarithms.
double timestep_of(double sigma, const std::vector<float>& sigmas) {
  const double log_sigma = std::log(std::max(sigma, 1e-10));
  std::size_t below = 0;
  for (std::size_t i = 0; i < sigmas.size(); ++i)
    if (std::log(sigmas[i]) <= log_sigma) below = i;
  if (sigmas.size() < 2) return 0.0;
  below = std::min(below, sigmas.size() - 2);
  const double low = std::log(sigmas[below]), high = std::log(sigmas[below + 1]);
  const double w = std::clamp((low - log_sigma) / (low - high), 0.0, 1.0);
  return (1 - w) * static_cast<double>(below) + w * static_cast<double>(below + 1);
}

class DpmSolver : public Sampler {
 public:
  DpmSolver(const SamplerSettings& settings, const NoiseSchedule& schedule)
      : settings_(settings), prediction_type_(schedule.settings().prediction_type) {
    const std::vector<float> training = training_sigmas(schedule);
    if (settings.use_karras_sigmas) {
      for (const double sigma : karras_sigmas(training, settings.num_inference_timesteps)) {
        const double t = timestep_of(sigma, training);
        const bool rounded = schedule.settings().beta_schedule != "squaredcos_cap_v2";
        timesteps_.push_back(static_cast<std::int64_t>(rounded ? std::nearbyint(t) : t));
        sigmas_.push_back(static_cast<float>(sigma));
      }
    } else {
      timesteps_ = spaced_timesteps(spacing_of(settings), schedule.settings().num_train_timesteps,
                                    settings.num_inference_timesteps, settings.steps_offset, true);
      for (const std::int64_t t : timesteps_) sigmas_.push_back(training[static_cast<std::size_t>(t)]);
    }
    sigmas_.push_back(settings.final_sigmas_type == "zero" ? 0.0f : training.front());
  }

  bool needs_noise(std::size_t) const override { return false; }

  at::Tensor step(std::size_t i, const at::Tensor& model_output, const at::Tensor& x, const at::Tensor&) override {
    clean_.push_back(clean_sample(prediction_type_, model_output, x, level(i)));
    if (clean_.size() > 3) clean_.erase(clean_.begin());
    const std::size_t steps = timesteps_.size();
    const bool few = settings_.lower_order_final && steps < 15;
    const bool last_is_first_order =
        i + 1 == steps && (settings_.euler_at_final || few || settings_.final_sigmas_type == "zero");
    int order = std::min(settings_.solver_order, static_cast<int>(clean_.size()));
    if (last_is_first_order)
      order = 1;
    else if (few && i + 2 == steps)
      order = std::min(order, 2);
    return order == 1 ? first_order(i, x) : order == 2 ? second_order(i, x) : third_order(i, x);
  }

 private:
  SignalAndNoise level(std::size_t i) const {
    const float alpha = 1.0f / std::sqrt(sigmas_[i] * sigmas_[i] + 1.0f);
    return {alpha, sigmas_[i] * alpha};
  }
  /// ln(alpha/sigma); infinite at noise zero.
  float lambda(std::size_t i) const {
    const SignalAndNoise l = level(i);
    return std::log(l.alpha) - std::log(l.sigma);
  }
  /// The j-th newest clean sample.
  const at::Tensor& clean(std::size_t j) const { return clean_[clean_.size() - 1 - j]; }

  at::Tensor first_order(std::size_t i, const at::Tensor& x) const {
    const float h = lambda(i + 1) - lambda(i);
    return (level(i + 1).sigma / level(i).sigma) * x - (level(i + 1).alpha * (std::exp(-h) - 1.0f)) * clean(0);
  }

  at::Tensor second_order(std::size_t i, const at::Tensor& x) const {
    const float h = lambda(i + 1) - lambda(i), r = (lambda(i) - lambda(i - 1)) / h;
    const at::Tensor slope = (1.0f / r) * (clean(0) - clean(1));
    const float decay = level(i + 1).alpha * (std::exp(-h) - 1.0f);
    const at::Tensor start = (level(i + 1).sigma / level(i).sigma) * x - decay * clean(0);
    if (settings_.solver_type == "midpoint") return start - 0.5f * decay * slope;
    return start + (level(i + 1).alpha * ((std::exp(-h) - 1.0f) / h + 1.0f)) * slope;
  }

  at::Tensor third_order(std::size_t i, const at::Tensor& x) const {
    const float h = lambda(i + 1) - lambda(i);
    const float r0 = (lambda(i) - lambda(i - 1)) / h, r1 = (lambda(i - 1) - lambda(i - 2)) / h;
    const at::Tensor d0 = (1.0f / r0) * (clean(0) - clean(1)), d1 = (1.0f / r1) * (clean(1) - clean(2));
    const at::Tensor slope = d0 + (r0 / (r0 + r1)) * (d0 - d1), curve = (1.0f / (r0 + r1)) * (d0 - d1);
    const float alpha = level(i + 1).alpha, shrink = std::exp(-h) - 1.0f;
    return (level(i + 1).sigma / level(i).sigma) * x - (alpha * shrink) * clean(0) +
           (alpha * (shrink / h + 1.0f)) * slope - (alpha * ((shrink + h) / (h * h) - 0.5f)) * curve;
  }

  SamplerSettings settings_;
  std::string prediction_type_;
  std::vector<float> sigmas_;      // one more than timesteps_
  std::vector<at::Tensor> clean_;  // of the last steps, oldest first
};

}  // namespace

std::unique_ptr<Sampler> make_dpm_solver(const SamplerSettings& settings, const NoiseSchedule& schedule) {
  return std::make_unique<DpmSolver>(settings, schedule);
}

}  // namespace cohort::models
