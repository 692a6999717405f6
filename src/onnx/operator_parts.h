/// What ONNX's operators are made of (operators.h), for the files that define them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "onnx/operators.h"

namespace cohort::onnx {

std::span<const Operator> elementwise_operators();
/// Matrices, normalisations, recurrent cells.
std::span<const Operator> matrix_operators();
/// What moves numbers and changes none, and sums over axes.
std::span<const Operator> shape_operators();

using Shape = std::vector<std::int64_t>;
using Tensors = std::vector<Tensor>;

inline std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t all = 1;
  for (std::size_t i = begin; i < end; ++i) all *= shape[i];
  return all;
}

/// Zeros.
inline Tensor empty_tensor(Shape shape, bool integral = false) {
  Tensor tensor{.name = {}, .shape = std::move(shape), .integral = integral, .floats = {}, .ints = {}};
  const auto n = static_cast<std::size_t>(tensor.elements());
  integral ? tensor.ints.resize(n) : tensor.floats.resize(n);
  return tensor;
}

inline Tensors one(Tensor tensor) {
  Tensors all;
  all.push_back(std::move(tensor));
  return all;
}

/// Index of an axis that may count from the end.
inline std::size_t axis_of(std::int64_t axis, std::size_t rank, const char* what = "axis") {
  const auto size = static_cast<std::int64_t>(rank);
  COHORT_THROW_UNLESS(axis >= -size && axis < size, "{} {} of a tensor with {} dimensions", what, axis, rank);
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

inline const std::vector<std::int64_t>& ints_of(const Tensor& tensor, const char* what) {
  COHORT_THROW_UNLESS(tensor.integral, "{} has to be whole numbers", what);
  return tensor.ints;
}

inline const std::vector<float>& floats_of(const Tensor& tensor) {
  COHORT_THROW_UNLESS(!tensor.integral, "whole numbers of shape {} where float is expected", shape_text(tensor.shape));
  return tensor.floats;
}

/// Axes as an attribute (until opset 12) or an input (from 13 on).
inline std::optional<std::vector<std::int64_t>> axes_of(const Call& call, std::size_t input = 1) {
  if (const Attribute* const axes = call.node.attribute("axes")) return axes->ints;
  if (call.has(input)) return ints_of(*call.inputs[input], "axes");
  return std::nullopt;
}

inline Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1, of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    COHORT_THROW_UNLESS(of_a == of_b || of_a == 1 || of_b == 1, "shapes {} and {} do not fit", shape_text(a),
                        shape_text(b));
    out[out.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return out;
}

/// Steps of `shape` through its numbers as `out` is walked; 0 where it is repeated.
inline Shape strides_in(const Shape& shape, const Shape& out) {
  Shape strides(out.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t from = shape.size() - 1 - i, to = out.size() - 1 - i;
    strides[to] = shape[from] == 1 ? 0 : step;
    step *= shape[from];
  }
  return strides;
}

template <class T, class Function>
void combine(const std::vector<T>& a, const Shape& of_a, const std::vector<T>& b, const Shape& of_b, const Shape& shape,
             std::vector<T>& out, const Function& function) {
  if (of_a == of_b) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = function(a[i], b[i]);
    return;
  }
  const Shape step_a = strides_in(of_a, shape), step_b = strides_in(of_b, shape);
  const std::size_t rank = shape.size();
  const std::int64_t inner = rank == 0 ? 1 : shape.back(), inner_a = rank == 0 ? 0 : step_a.back(),
                     inner_b = rank == 0 ? 0 : step_b.back();
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t at_a = 0, at_b = 0;
  for (std::size_t done = 0; done < out.size(); done += static_cast<std::size_t>(inner)) {
    for (std::int64_t i = 0; i < inner; ++i)
      out[done + static_cast<std::size_t>(i)] =
          function(a[static_cast<std::size_t>(at_a + i * inner_a)], b[static_cast<std::size_t>(at_b + i * inner_b)]);
    for (std::size_t d = rank < 2 ? 0 : rank - 1; d-- > 0;) {
      at_a += step_a[d], at_b += step_b[d];
      if (++index[d] < shape[d]) break;
      at_a -= step_a[d] * shape[d], at_b -= step_b[d] * shape[d];
      index[d] = 0;
    }
  }
}

template <class Function>
inline Tensor elementwise(const Tensor& a, const Tensor& b, const Function& function) {
  COHORT_THROW_UNLESS(a.integral == b.integral, "whole numbers and float are mixed");
  Tensor out = empty_tensor(broadcast(a.shape, b.shape), a.integral);
  if (a.integral)
    combine(a.ints, a.shape, b.ints, b.shape, out.shape, out.ints, function);
  else
    combine(a.floats, a.shape, b.floats, b.shape, out.shape, out.floats, function);
  return out;
}

inline float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

/// body(from, to) with the tensor's numbers, whole or not.
template <class Body>
void with_numbers(const Tensor& from, Tensor& to, const Body& body) {
  from.integral ? body(from.ints, to.ints) : body(from.floats, to.floats);
}

}  // namespace cohort::onnx
