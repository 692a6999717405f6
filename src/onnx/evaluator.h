/// Computes an ONNX model on one core of the CPU, in float32, for any number of rows.
///
///   const Evaluator evaluator(read_model("policy.onnx"));       // Error for an operator that is not here
///   std::vector<Tensor> out = evaluator.run({Tensor::of("obs", {2, 3}, {...})});
///
/// What a row gets does not depend on the rows beside it. The operators (operators.h) are those of networks that act:
/// layers, activations, recurrent cells, and what exporters put between them.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.h"

namespace cohort::onnx {

struct Operator;

class Evaluator {
 public:
  /// Throws Error naming node and operator for one that is unknown, and for an input that no node gives.
  explicit Evaluator(Model model);

  const Model& model() const { return model_; }
  /// inputs: each of the model's, under its name. The model's outputs, in its order. May be called by several threads
  /// at a time. Throws Error naming the node where shapes do not fit.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;

 private:
  struct Step {
    std::size_t node = 0;
    const Operator* op = nullptr;
    std::vector<std::ptrdiff_t> inputs, outputs;    ///< slots; -1: left out
    std::vector<std::optional<Tensor>> transposed;  ///< of inputs that are constant matrices and are read so
  };
  /// Fills the slots that the step gives.
  void compute(const Step& step, const std::vector<const Tensor*>& slots, std::vector<Tensor>& results) const;

  Model model_;
  std::vector<Tensor> constants_;  // initializers, and what follows from them alone
  std::vector<std::ptrdiff_t> constant_slots_;
  std::vector<std::ptrdiff_t> input_slots_, output_slots_;
  std::vector<Step> steps_;
  std::size_t slots_ = 0;
};

}  // namespace cohort::onnx
