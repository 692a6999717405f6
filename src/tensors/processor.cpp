#include "tensors/processor.h"

#include <malloc.h>

#include <torch/types.h>

#include "tensors/matrix_product.h"

namespace cohort::tensors {
namespace {

/// glibc gives blocks of more than 32 MiB back to the system when they are freed, and the next step has every page of them
/// cleared again.
void keep_freed_memory() {
#ifdef __GLIBC__
  static const bool done = [] {
    constexpr int kNever = 0, kAlways = 2147483647;
    return mallopt(M_MMAP_MAX, kNever) != 0 && mallopt(M_TRIM_THRESHOLD, kAlways) != 0;
  }();
  (void)done;
#endif
}

}  // namespace

void prepare_arithmetic() {
  // One function stands for all: what is looked up is the processor.
  const at::NoGradGuard no_grad;
  (void)at::tanh(at::zeros({1}, at::kFloat));
  speed_up_matrix_products();
  keep_freed_memory();
}

}  // namespace cohort::tensors
