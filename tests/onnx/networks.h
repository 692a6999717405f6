/// Small models for tests.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "onnx/model.h"

namespace cohort::onnx {

inline Node node(std::string op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  return {.name = op + "_1",
          .op = op,
          .domain = "",
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attributes = {}};
}

/// actions = tanh(obs W + b): (n, 3) -> (n, 1), which brings a LineTask's point to 0. batch: -1 for any number of rows.
inline Model to_zero(std::int64_t batch = -1) {
  Model model;
  model.producer = "test";
  model.name = "to zero";
  model.inputs = {{.name = "obs", .shape = {{batch, "batch"}, {3, ""}}}};
  model.outputs = {{.name = "actions", .shape = {{batch, "batch"}, {1, ""}}}};
  model.initializers = {Tensor::of("w", {3, 1}, {-9, 0, 0}), Tensor::of("b", {1}, {0})};
  model.nodes = {node("Gemm", {"obs", "w", "b"}, {"x"}), node("Tanh", {"x"}, {"actions"})};
  return model;
}

}  // namespace cohort::onnx
