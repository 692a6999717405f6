/// Reads the parity fixtures: safetensors files that the reference implementation wrote.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace cohort::models {

struct Fixture {
  std::map<std::string, at::Tensor> tensors;
  nlohmann::ordered_json metadata;

  /// The tensor of this name; throws where it is missing.
  const at::Tensor& at(const std::string& name) const;
  /// Those whose name starts with the prefix, without it.
  std::map<std::string, at::Tensor> under(const std::string& prefix) const;
};

/// tests/models/fixtures/<name>.safetensors
Fixture read_fixture(const std::string& name);
/// Any safetensors file.
Fixture read_safetensors(const std::string& path);

/// Parameters and buffers by name, as PyTorch's state_dict has them.
std::map<std::string, at::Tensor> state_of(const torch::nn::Module& module);

/// Copies values into the module's state; every name must exist there with that shape.
void load_state(torch::nn::Module& module, const std::map<std::string, at::Tensor>& values);

/// Largest |a - b| over the largest |b| (at least `floor`). NaN counts as infinite.
double relative_difference(const at::Tensor& a, const at::Tensor& b, double floor);

}  // namespace cohort::models
