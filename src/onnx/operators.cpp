#include "onnx/operators.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "onnx/operator_parts.h"

namespace cohort::onnx {

const Tensor& Call::input(std::size_t i) const {
  COHORT_THROW_UNLESS(has(i), "input {} is missing", i);
  return *inputs[i];
}

const Operator* find_operator(const std::string& name) {
  for (const auto& some : {elementwise_operators(), matrix_operators(), shape_operators()})
    for (const Operator& op : some)
      if (name == op.name) return &op;
  return nullptr;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const auto& some : {elementwise_operators(), matrix_operators(), shape_operators()})
    for (const Operator& op : some) names.emplace_back(op.name);
  std::sort(names.begin(), names.end());
  return names;
}

Tensor transposed(const Tensor& matrix) {
  COHORT_THROW_UNLESS(matrix.shape.size() >= 2, "a matrix is expected, and this has the shape {}",
                      shape_text(matrix.shape));
  const std::vector<float>& numbers = floats_of(matrix);
  Shape shape = matrix.shape;
  const std::size_t rank = shape.size();
  const auto rows = static_cast<std::size_t>(shape[rank - 2]), columns = static_cast<std::size_t>(shape[rank - 1]);
  std::swap(shape[rank - 2], shape[rank - 1]);
  Tensor out = empty_tensor(shape);
  const std::size_t size = rows * columns;
  for (std::size_t first = 0; size > 0 && first < numbers.size(); first += size)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) out.floats[first + c * rows + r] = numbers[first + r * columns + c];
  return out;
}

}  // namespace cohort::onnx
