#include "models/convolution.h"

#include <cmath>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"

namespace cohort::models {
namespace {

std::vector<std::int64_t> weight_shape(int dimensions, const ConvolutionSettings& s) {
  std::vector<std::int64_t> shape{s.transposed ? s.in : s.out, s.transposed ? s.out : s.in};
  shape.insert(shape.end(), static_cast<std::size_t>(dimensions), s.kernel);
  return shape;
}

}  // namespace

Convolution::Convolution(int dimensions, const ConvolutionSettings& settings, Start start)
    : settings_(settings),
      stride_(static_cast<std::size_t>(dimensions), settings.stride),
      padding_(static_cast<std::size_t>(dimensions), settings.padding),
      start_(start),
      weight_(register_parameter("weight", at::empty(weight_shape(dimensions, settings)))) {
  if (settings.bias) bias_ = register_parameter("bias", at::empty({settings.out}));
}

at::Tensor Convolution::forward(const at::Tensor& x) const {
  // By their names: autocast on the CPU knows these, but not at::convolution.
  const std::optional<at::Tensor> bias = bias_.defined() ? std::optional<at::Tensor>(bias_) : std::nullopt;
  if (stride_.size() == 1)
    return settings_.transposed ? at::conv_transpose1d(x, weight_, bias, stride_, padding_)
                                : at::conv1d(x, weight_, bias, stride_, padding_);
  return settings_.transposed ? at::conv_transpose2d(x, weight_, bias, stride_, padding_)
                              : at::conv2d(x, weight_, bias, stride_, padding_);
}

at::Tensor Convolution::forward_scaled(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) const {
  COHORT_CHECK(!settings_.transposed && !bias_.defined(), "only a plain convolution without bias is scaled");
  std::vector<std::int64_t> of_channel(static_cast<std::size_t>(weight_.dim()), 1);
  of_channel[0] = scale.size(0);
  const at::Tensor weight = weight_ * scale.view(of_channel);
  return stride_.size() == 1 ? at::conv1d(x, weight, shift, stride_, padding_)
                             : at::conv2d(x, weight, shift, stride_, padding_);
}

void Convolution::initialise(Initialiser& initialiser) {
  if (start_ == Start::kFanOutNormal)
    initialiser.normal(
        weight_, std::sqrt(2.0 / static_cast<double>(weight_.numel() / weight_.size(settings_.transposed ? 0 : 1))));
  else
    initialiser.fan_in_uniform(weight_);
  if (bias_.defined()) initialiser.fan_in_uniform_bias(bias_, weight_);
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels)
    : groups_(groups),
      weight_(register_parameter("weight", at::empty({channels}))),
      bias_(register_parameter("bias", at::empty({channels}))) {
  COHORT_THROW_UNLESS(groups >= 1 && channels % groups == 0, "group norm: {} groups do not divide {} channels", groups,
                      channels);
}

at::Tensor GroupNorm::forward(const at::Tensor& x) const {
  return at::group_norm(x, groups_, weight_, bias_, 1e-5);
}

void GroupNorm::initialise(Initialiser& initialiser) {
  initialiser.constant(weight_, 1.0);
  initialiser.constant(bias_, 0.0);
}

}  // namespace cohort::models
