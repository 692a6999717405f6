#include "rl/gaussian.h"

#include <torch/types.h>

namespace cohort::rl {
namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;

}  // namespace

at::Tensor gaussian_log_prob(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& actions) {
  const at::Tensor standard = (actions - mean) * (-log_std).exp();
  return (-0.5 * standard.square() - log_std - kHalfLogTwoPi).sum(-1);
}

at::Tensor gaussian_entropy(const at::Tensor& log_std) {
  return (log_std + (0.5 + kHalfLogTwoPi)).sum(-1);
}

at::Tensor log_tanh_derivative(const at::Tensor& x) {
  constexpr double kLogTwo = 0.69314718055994530942;
  return 2 * (kLogTwo - x - at::softplus(-2 * x));
}

at::Tensor gaussian_kl(const at::Tensor& old_mean, const at::Tensor& old_log_std, const at::Tensor& mean,
                       const at::Tensor& log_std) {
  // Written so that equal Gaussians have exactly 0.
  const at::Tensor log_ratio = 2 * (old_log_std - log_std);
  const at::Tensor shift = ((old_mean - mean) * (-log_std).exp()).square();
  return (0.5 * (log_ratio.exp() + shift - 1 - log_ratio)).sum(-1);
}

}  // namespace cohort::rl
