#include "tensors/processor.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <torch/types.h>

#include "tensors/matrix_product.h"

namespace cohort::tensors {

void prepare_arithmetic() {
  // One function stands for all: what is looked up is the processor.
  const at::NoGradGuard no_grad;
  (void)at::tanh(at::zeros({1}, at::kFloat));
  speed_up_matrix_products();
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kNever = 0, kAlways = 2147483647;
  (void)mallopt(M_MMAP_MAX, kNever);
  (void)mallopt(M_TRIM_THRESHOLD, kAlways);
#endif
}

}  // namespace cohort::tensors
