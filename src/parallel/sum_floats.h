/// target[i] += source[i]: the inner loop of gradient reduction on the CPU, in a file of its own that is compiled for
/// vectors and without LibTorch.
#pragma once
#include <cstddef>

namespace cohort::parallel {

void add_to(float* target, const float* source, std::size_t count);
void add_to(double* target, const double* source, std::size_t count);

}  // namespace cohort::parallel
