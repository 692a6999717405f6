/// Initial weights with PyTorch's distributions, drawn from Philox: keyed by (seed, parameter's position in the model),
/// so that they are equal on every rank and device, and a layer's draw does not depend on how many numbers another one
/// took.
#pragma once
#include <cstdint>
#include <unordered_map>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace cohort::models {

/// Draws the parameters of one model. Each method fills one parameter in place, whatever its device.
class Initialiser {
 public:
  /// Positions are those of model.named_parameters().
  Initialiser(const torch::nn::Module& model, std::uint64_t seed);

  /// What PyTorch does for Linear and convolution weights, kaiming_uniform_(a = sqrt 5): U(±1/sqrt(fan_in)); fan_in is
  /// the product of all dimensions but the first.
  void fan_in_uniform(const at::Tensor& weight);
  /// What it does for their biases: U(±1/sqrt(fan_in)) with the weight's fan_in.
  void fan_in_uniform_bias(const at::Tensor& bias, const at::Tensor& weight);
  /// kaiming_normal_(mode fan_in, nonlinearity leaky_relu with slope 0): N(0, 2/fan_in).
  void kaiming_normal(const at::Tensor& weight);
  void normal(const at::Tensor& parameter, double deviation);
  void uniform(const at::Tensor& parameter, double bound);
  void constant(const at::Tensor& parameter, double value);
  /// The parameter already holds a fixed table; counts as initialised.
  void keep(const at::Tensor& parameter);

 private:
  friend void initialise(torch::nn::Module& model, std::uint64_t seed);
  std::uint64_t position(const at::Tensor& parameter);

  std::uint64_t seed_;
  std::unordered_map<const void*, std::uint64_t> position_;
  std::unordered_map<const void*, int> drawn_;
};

/// A module that owns parameters directly says here how they start.
class Initialised {
 public:
  virtual ~Initialised() = default;
  virtual void initialise(Initialiser& initialiser) = 0;
};

/// Initialises every parameter of the model, module by module. Throws Error when a parameter is left out or drawn
/// twice.
void initialise(torch::nn::Module& model, std::uint64_t seed);

/// fan_in of a weight (out, in, ...): in times the kernel's size.
std::int64_t fan_in_of(const at::Tensor& weight);

}  // namespace cohort::models
