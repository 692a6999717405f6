/// Mean and deviation of observations so far, kept as count, mean and M2 (sum of squared differences from the mean) and
/// merged exactly: Chan, Golub, LeVeque, "Algorithms for computing the sample variance", 1983.
///
///   RunningMoments moments(width);
///   at::Tensor normalised = moments.normalize(observations);   // (..., width)
///   moments.merge(rollout_observations);                       // once per rollout
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "rl/ranks.h"

namespace cohort::rl {

/// Buffers `count` (), `mean` (width), `m2` (width), float64. Before the first merge nothing is normalised.
class RunningMoments : public torch::nn::Module {
 public:
  explicit RunningMoments(std::int64_t width);

  /// (x - mean) / (deviation + 0.01), as rsl_rl's EmpiricalNormalization: (..., width) float32.
  at::Tensor normalize(const at::Tensor& x) const;
  /// The same for x that has only these columns.
  at::Tensor normalize(const at::Tensor& x, const at::Tensor& columns) const;
  /// Adds all rows of x (..., width); or what was gathered of them.
  void merge(const at::Tensor& x);
  void merge(const Moments& moments);
  /// To be called when the buffers were written from outside (a checkpoint).
  void refresh();

  const at::Tensor& count() const { return count_; }
  const at::Tensor& mean() const { return mean_; }
  const at::Tensor& m2() const { return m2_; }
  /// What normalize() subtracts, and what it divides by, float32 (width).
  const at::Tensor& shift() const { return shift_; }
  const at::Tensor& divisor() const { return divisor_; }

 private:
  at::Tensor count_, mean_, m2_;
  at::Tensor shift_, divisor_;  // float32, what follows from the buffers
};

}  // namespace cohort::rl
