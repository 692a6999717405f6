#include "train/finite_buffers.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace cohort::train {

void FiniteBuffers::keep() {
  kept_.clear();
  for (const at::Tensor& buffer : module_.buffers())
    if (buffer.is_floating_point()) kept_.push_back(buffer.detach().clone());
}

void FiniteBuffers::restore() {
  const at::NoGradGuard no_grad;
  auto kept = kept_.begin();
  for (at::Tensor& buffer : module_.buffers()) {
    if (!buffer.is_floating_point()) continue;
    buffer.copy_(at::where(buffer.isfinite(), buffer, *kept++));
  }
}

}  // namespace cohort::train
