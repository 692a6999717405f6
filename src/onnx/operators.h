/// ONNX's operators as functions of tensors, by the formulas of https://onnx.ai/onnx/operators/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.h"

namespace cohort::onnx {

/// What an operator is given.
struct Call {
  const Node& node;
  std::int64_t opset;
  std::vector<const Tensor*> inputs;  ///< null: left out
  /// The transposed input where it is constant and Operator::transposes names it; null: work it out.
  std::vector<const Tensor*> transposed;

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  /// Throws Error where it is left out.
  const Tensor& input(std::size_t i) const;
};

struct Operator {
  const char* name;
  /// As many tensors as the node has outputs; more are dropped.
  std::vector<Tensor> (*apply)(const Call& call);
  /// Inputs whose matrices are read transposed, as bits: 1 << i; those of Gemm where it has transB.
  unsigned transposes = 0;
};

/// Null: it is not here.
const Operator* find_operator(const std::string& name);
/// Names of all, for messages.
std::vector<std::string> operator_names();

/// The last two dimensions swapped.
Tensor transposed(const Tensor& matrix);

}  // namespace cohort::onnx
