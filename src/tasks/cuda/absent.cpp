// Stands in for control_step.cu and episodes.cu where CMake found no CUDA compiler.
#include "tasks/cuda/control_step.h"
#include "tasks/cuda/episodes.h"

namespace cohort::tasks::cuda {

namespace {
constexpr const char* kAbsent =
    "this build has no CUDA kernels: configure again with nvcc in PATH (or CMAKE_CUDA_COMPILER set)";
}

const char* control(int, void*, const Environments&, const terms::Evaluation&, const Registers&) {
  return kAbsent;
}
const char* judge(int, void*, const Environments&, const terms::Evaluation&, const Registers&) {
  return kAbsent;
}
const char* begin(int, void*, const Environments&, const int*, const unsigned*, int) {
  return kAbsent;
}
const char* observe(int, void*, const terms::Evaluation&, const Registers&, const int*, int) {
  return kAbsent;
}
const char* count(int, void*, const Episodes&) {
  return kAbsent;
}
const char* renew(int, void*, const Episodes&, const int*, const long long*, double*, int) {
  return kAbsent;
}
const char* draw_normal(int, void*, float*, int, int, unsigned long long, unsigned long long, unsigned long long) {
  return kAbsent;
}

}  // namespace cohort::tasks::cuda
