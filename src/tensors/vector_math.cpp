#include "tensors/vector_math.h"

#include <torch/types.h>

namespace cohort::tensors {

void resolve_vector_math() {
  // One function stands for all: what is looked up is the processor.
  const at::NoGradGuard no_grad;
  (void)at::tanh(at::zeros({1}, at::kFloat));
}

}  // namespace cohort::tensors
