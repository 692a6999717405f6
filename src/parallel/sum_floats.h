/// The inner loops of gradient reduction on the CPU, in a file of their own that is compiled for vectors and without
/// LibTorch.
#pragma once
#include <cstddef>

namespace cohort::parallel {

/// target[i] += source[i]
void add_to(float* target, const float* source, std::size_t count);
/// target[i] = factor * source[i]; the two may be the same.
void scale_to(float* target, const float* source, float factor, std::size_t count);
void add_to(double* target, const double* source, std::size_t count);

}  // namespace cohort::parallel
