#include "models/layers.h"

#include <cmath>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/linear.h"
#include "models/random_context.h"

namespace cohort::models {

Linear::Linear(std::int64_t in, std::int64_t out)
    : weight_(register_parameter("weight", at::empty({out, in}))),
      bias_(register_parameter("bias", at::empty({out}))) {}

at::Tensor Linear::forward(const at::Tensor& x) const {
  return linear(x, weight_, bias_);
}

at::Tensor Linear::forward_rows(const at::Tensor& x, std::int64_t first, std::int64_t count) const {
  if (first == 0 && count == weight_.size(0)) return forward(x);
  return linear(x, weight_.narrow(0, first, count), bias_.narrow(0, first, count));
}

void Linear::initialise(Initialiser& initialiser) {
  initialiser.fan_in_uniform(weight_);
  initialiser.fan_in_uniform_bias(bias_, weight_);
}

PointwiseConv::PointwiseConv(std::int64_t in, std::int64_t out)
    : weight_(register_parameter("weight", at::empty({out, in, 1}))),
      bias_(register_parameter("bias", at::empty({out}))) {}

at::Tensor PointwiseConv::forward(const at::Tensor& x_BLC) const {
  return linear(x_BLC, weight_.view({weight_.size(0), weight_.size(1)}), bias_);
}

void PointwiseConv::initialise(Initialiser& initialiser) {
  initialiser.fan_in_uniform(weight_);
  initialiser.fan_in_uniform_bias(bias_, weight_);
}

CircularConv::CircularConv(std::int64_t in, std::int64_t out, Start start)
    : start_(start),
      weight_(register_parameter("weight", at::empty({out, in, 3}))),
      bias_(register_parameter("bias", at::empty({out}))) {}

at::Tensor CircularConv::flat_weight() const {
  return weight_.transpose(1, 2).reshape({weight_.size(0), 3 * weight_.size(1)});
}

at::Tensor CircularConv::forward(const at::Tensor& x_BLC) const {
  return linear(ring_neighbours(x_BLC), flat_weight(), bias_);
}

void CircularConv::initialise(Initialiser& initialiser) {
  if (start_ == Start::kKaimingNormal)
    initialiser.kaiming_normal(weight_);
  else
    initialiser.fan_in_uniform(weight_);
  initialiser.fan_in_uniform_bias(bias_, weight_);
}

at::Tensor ring_neighbours(const at::Tensor& x_BLC) {
  return at::cat({x_BLC.roll(1, 1), x_BLC, x_BLC.roll(-1, 1)}, -1);
}

LayerNorm::LayerNorm(std::int64_t width, double eps)
    : eps_(eps),
      weight_(register_parameter("weight", at::empty({width}))),
      bias_(register_parameter("bias", at::empty({width}))) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  return at::layer_norm(x, weight_.sizes(), weight_, bias_, eps_);
}

void LayerNorm::initialise(Initialiser& initialiser) {
  initialiser.constant(weight_, 1.0);
  initialiser.constant(bias_, 0.0);
}

BatchNorm::BatchNorm(std::int64_t channels)
    : weight_(register_parameter("weight", at::empty({channels}))),
      bias_(register_parameter("bias", at::empty({channels}))),
      running_mean_(register_buffer("running_mean", at::zeros({channels}))),
      running_var_(register_buffer("running_var", at::ones({channels}))),
      num_batches_tracked_(register_buffer("num_batches_tracked", at::zeros({}, at::kLong))) {}

at::Tensor BatchNorm::forward(const at::Tensor& x_BCL1) const {
  constexpr double kMomentum = 0.1, kEpsilon = 1e-5;
  const bool tracks = is_training() && !(has_random_context() && random_context().recomputing);
  if (tracks) {
    at::Tensor count = num_batches_tracked_;
    count.add_(1);
  }
  const bool uses_running = tracks || !is_training();
  return at::batch_norm(x_BCL1, weight_, bias_, uses_running ? running_mean_ : at::Tensor(),
                        uses_running ? running_var_ : at::Tensor(), is_training(), kMomentum, kEpsilon,
                        at::globalContext().userEnabledCuDNN());
}

void BatchNorm::initialise(Initialiser& initialiser) {
  initialiser.constant(weight_, 1.0);
  initialiser.constant(bias_, 0.0);
}

at::Tensor sinusoid_table(std::int64_t length, std::int64_t width) {
  COHORT_THROW_UNLESS(width % 2 == 0, "a sinusoid table needs an even width (d_model), not {}", width);
  // In the reference implementations' order of float32 operations, so that the table has their bits.
  const at::Tensor position = at::arange(0, length).to(at::kFloat).unsqueeze(1);
  const at::Tensor rate =
      (at::arange(0, width, 2).to(at::kFloat) * -(std::log(10000.0) / static_cast<double>(width))).exp();
  const at::Tensor angle = position * rate;
  return at::stack({angle.sin(), angle.cos()}, -1).reshape({length, width});
}

}  // namespace cohort::models
