/// What a network's output says about the clean sample and the noise in a noisy one.
#pragma once
#include <string>

#include <ATen/core/Tensor.h>

namespace cohort::models {

/// x = alpha·x0 + sigma·noise, alpha² + sigma² = 1.
struct SignalAndNoise {
  float alpha = 1.0f;
  float sigma = 0.0f;
};

/// The clean sample behind x.
at::Tensor clean_sample(const std::string& prediction_type, const at::Tensor& model_output, const at::Tensor& x,
                        SignalAndNoise level);
/// The noise in x. `clean` is what clean_sample gave.
at::Tensor noise_in(const std::string& prediction_type, const at::Tensor& model_output, const at::Tensor& x,
                    const at::Tensor& clean, SignalAndNoise level);

}  // namespace cohort::models
