// Stands in for dropout.cu where CMake found no CUDA compiler.
#include "models/cuda/dropout.h"

namespace cohort::models::cuda {

bool available() {
  return false;
}

const char* dropout(const DropoutBatch&, void*) {
  return "this build has no CUDA kernels: configure again with nvcc in PATH (or CMAKE_CUDA_COMPILER set)";
}

}  // namespace cohort::models::cuda
