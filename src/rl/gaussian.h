/// Diagonal Gaussians over actions: closed formulas. mean (..., A); log_std (A) or (..., A); results (...).
#pragma once
#include <ATen/core/Tensor.h>

namespace cohort::rl {

at::Tensor gaussian_log_prob(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& actions);
at::Tensor gaussian_entropy(const at::Tensor& log_std);
/// log(1 - tanh(x)²), without loss of digits where tanh is nearly 1.
at::Tensor log_tanh_derivative(const at::Tensor& x);
/// KL(old || new).
at::Tensor gaussian_kl(const at::Tensor& old_mean, const at::Tensor& old_log_std, const at::Tensor& mean,
                       const at::Tensor& log_std);

}  // namespace cohort::rl
