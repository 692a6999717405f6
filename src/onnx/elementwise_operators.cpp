#include <limits>

#include "onnx/operator_parts.h"

namespace cohort::onnx {
namespace {

Tensors add(const Call& call) {
  return one(elementwise(call.input(0), call.input(1), [](auto a, auto b) { return a + b; }));
}
Tensors subtract(const Call& call) {
  return one(elementwise(call.input(0), call.input(1), [](auto a, auto b) { return a - b; }));
}
Tensors multiply(const Call& call) {
  return one(elementwise(call.input(0), call.input(1), [](auto a, auto b) { return a * b; }));
}
Tensors divide(const Call& call) {
  const Tensor& by = call.input(1);
  COHORT_THROW_UNLESS(!by.integral || std::find(by.ints.begin(), by.ints.end(), 0) == by.ints.end(),
                      "whole numbers are divided by 0");
  return one(elementwise(call.input(0), by, [](auto a, auto b) { return a / b; }));
}
Tensors power(const Call& call) {
  const Tensor &base = call.input(0), &exponent = call.input(1);
  Tensor as_float = exponent;
  if (exponent.integral) {
    as_float.integral = false;
    as_float.floats.assign(exponent.ints.begin(), exponent.ints.end());
    as_float.ints.clear();
  }
  floats_of(base);
  return one(elementwise(base, as_float, [](auto a, auto b) { return static_cast<decltype(a)>(std::pow(a, b)); }));
}
template <class Function>
Tensors folded(const Call& call, const Function& function) {
  Tensor out = call.input(0);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) out = elementwise(out, call.input(i), function);
  return one(std::move(out));
}
Tensors least(const Call& call) {
  return folded(call, [](auto a, auto b) { return std::min(a, b); });
}
Tensors greatest(const Call& call) {
  return folded(call, [](auto a, auto b) { return std::max(a, b); });
}

template <class Function>
Tensors mapped(const Call& call, const Function& function) {
  const Tensor& x = call.input(0);
  floats_of(x);
  Tensor out{.name = {}, .shape = x.shape, .floats = x.floats, .ints = {}};
  for (float& value : out.floats) value = function(value);
  return one(std::move(out));
}

Tensors clip(const Call& call) {
  float low = call.node.number("min", -std::numeric_limits<float>::infinity()),
        high = call.node.number("max", std::numeric_limits<float>::infinity());
  if (call.has(1)) low = floats_of(call.input(1)).at(0);
  if (call.has(2)) high = floats_of(call.input(2)).at(0);
  return mapped(call, [&](float x) { return std::min(std::max(x, low), high); });
}
Tensors elu(const Call& call) {
  const float alpha = call.node.number("alpha", 1);
  return mapped(call, [&](float x) { return x < 0 ? alpha * std::expm1(x) : x; });
}
Tensors selu(const Call& call) {
  const float alpha = call.node.number("alpha", 1.67326319217681884765625f),
              gamma = call.node.number("gamma", 1.05070102214813232421875f);
  return mapped(call, [&](float x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}
Tensors leaky_relu(const Call& call) {
  const float alpha = call.node.number("alpha", 0.01f);
  return mapped(call, [&](float x) { return x < 0 ? alpha * x : x; });
}
Tensors relu(const Call& call) {
  return mapped(call, [](float x) { return std::max(x, 0.0f); });
}
Tensors tanh_of(const Call& call) {
  return mapped(call, [](float x) { return std::tanh(x); });
}
Tensors sigmoid_of(const Call& call) {
  return mapped(call, sigmoid);
}
Tensors hard_sigmoid(const Call& call) {
  const float alpha = call.node.number("alpha", 0.2f), beta = call.node.number("beta", 0.5f);
  return mapped(call, [&](float x) { return std::clamp(alpha * x + beta, 0.0f, 1.0f); });
}
Tensors softplus(const Call& call) {
  return mapped(call, [](float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); });
}
Tensors softsign(const Call& call) {
  return mapped(call, [](float x) { return x / (1 + std::abs(x)); });
}
Tensors exp_of(const Call& call) {
  return mapped(call, [](float x) { return std::exp(x); });
}
Tensors log_of(const Call& call) {
  return mapped(call, [](float x) { return std::log(x); });
}
Tensors sqrt_of(const Call& call) {
  return mapped(call, [](float x) { return std::sqrt(x); });
}
Tensors reciprocal(const Call& call) {
  return mapped(call, [](float x) { return 1 / x; });
}
Tensors negative(const Call& call) {
  return mapped(call, [](float x) { return -x; });
}
Tensors absolute(const Call& call) {
  return mapped(call, [](float x) { return std::abs(x); });
}
Tensors erf_of(const Call& call) {
  return mapped(call, [](float x) { return std::erf(x); });
}
Tensors sin_of(const Call& call) {
  return mapped(call, [](float x) { return std::sin(x); });
}
Tensors cos_of(const Call& call) {
  return mapped(call, [](float x) { return std::cos(x); });
}

/// Softmax over one axis, as from opset 13 on.
Tensors softmax(const Call& call) {
  const Tensor& x = call.input(0);
  Tensor out{.name = {}, .shape = x.shape, .floats = floats_of(x), .ints = {}};
  const std::size_t axis = axis_of(call.node.integer("axis", call.opset < 13 ? 1 : -1), x.shape.size());
  COHORT_THROW_UNLESS(call.opset >= 13 || axis + 1 == x.shape.size(), "softmax over several axes at once (opset {})",
                      call.opset);
  const std::int64_t count = x.shape[axis], inner = product(x.shape, axis + 1, x.shape.size()),
                     outer = product(x.shape, 0, axis);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      float* const first = out.floats.data() + o * count * inner + i;
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (std::int64_t k = 0; k < count; ++k) largest = std::max(largest, first[k * inner]);
      for (std::int64_t k = 0; k < count; ++k) sum += first[k * inner] = std::exp(first[k * inner] - largest);
      for (std::int64_t k = 0; k < count; ++k) first[k * inner] /= sum;
    }
  return one(std::move(out));
}

constexpr Operator kElementwiseOperators[] = {
    {"Abs", absolute},
    {"Add", add},
    {"Clip", clip},
    {"Cos", cos_of},
    {"Div", divide},
    {"Elu", elu},
    {"Erf", erf_of},
    {"Exp", exp_of},
    {"HardSigmoid", hard_sigmoid},
    {"LeakyRelu", leaky_relu},
    {"Log", log_of},
    {"Max", greatest},
    {"Min", least},
    {"Mul", multiply},
    {"Neg", negative},
    {"Pow", power},
    {"Reciprocal", reciprocal},
    {"Relu", relu},
    {"Selu", selu},
    {"Sigmoid", sigmoid_of},
    {"Sin", sin_of},
    {"Softmax", softmax},
    {"Softplus", softplus},
    {"Softsign", softsign},
    {"Sqrt", sqrt_of},
    {"Sub", subtract},
    {"Tanh", tanh_of},
};

}  // namespace

std::span<const Operator> elementwise_operators() {
  return kElementwiseOperators;
}

}  // namespace cohort::onnx
