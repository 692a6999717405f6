// Stands in for drawer.cu where CMake found no CUDA compiler.
#include "render/cuda/drawer.h"

namespace cohort::render::cuda {

const char* draw(const Job&) {
  return "this build has no CUDA kernels: configure again with nvcc in PATH (or CMAKE_CUDA_COMPILER set)";
}

}  // namespace cohort::render::cuda
