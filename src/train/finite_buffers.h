/// Keeps a model's buffers finite where bad steps are skipped: a forward pass through BatchNorm writes a NaN of its
/// batch into the running statistics, which skipping the optimizer's step does not take back.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace cohort::train {

class FiniteBuffers {
 public:
  /// `module` must outlive this.
  explicit FiniteBuffers(const torch::nn::Module& module) : module_(module) {}
  /// Remembers the floating-point buffers as they are.
  void keep();
  /// Puts back, element by element, what has become NaN or inf since. Nothing is copied to the host.
  void restore();

 private:
  const torch::nn::Module& module_;
  std::vector<at::Tensor> kept_;
};

}  // namespace cohort::train
