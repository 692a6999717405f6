/// What a module consists of: its parameters without duplicates, their names, shapes and devices.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "core/array_view.h"

namespace torch::nn {
class Module;
}

namespace cohort::dist {
class Group;
}

namespace cohort::parallel {

struct NamedTensor {
  std::string name;  ///< as in the state dict: "encoder.0.weight"
  at::Tensor tensor;
  bool sparse_gradient = false;  ///< weight of an Embedding or EmbeddingBag with sparse(true)
};

/// Parameters in order of definition; one that is shared by several layers appears once, under its first name.
std::vector<NamedTensor> parameters_of(const torch::nn::Module& module);
/// Buffers, likewise.
std::vector<NamedTensor> buffers_of(const torch::nn::Module& module);
/// Buffers except those whose name ends with one of `constant`.
std::vector<NamedTensor> changing_buffers_of(const torch::nn::Module& module, const std::vector<std::string>& constant);

/// Throws Error naming the first parameter or buffer that does not lie on `device`.
void check_on_device(const torch::nn::Module& module, c10::Device device);

/// Compares names, element types and shapes of parameters and buffers across all ranks. Throws the same Error on every
/// rank, naming the first rank that differs from rank 0, the parameter, and both shapes. Collective.
void check_same_layout(const torch::nn::Module& module, dist::Group& group);

}  // namespace cohort::parallel
