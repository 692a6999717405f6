#include "parallel/sum_floats.h"

namespace cohort::parallel {

void add_to(float* __restrict target, const float* __restrict source, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
}

void scale_to(float* target, const float* source, float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] = factor * source[i];
}

void add_to(double* __restrict target, const double* __restrict source, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
}

}  // namespace cohort::parallel
