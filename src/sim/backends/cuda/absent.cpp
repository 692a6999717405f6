// Stands in for runner.cu where CMake found no CUDA compiler.
#include "sim/backends/cuda/runner.h"

namespace cohort::sim::cuda {

namespace {
constexpr const char* kAbsent =
    "this build has no CUDA kernels: configure again with nvcc in PATH (or CMAKE_CUDA_COMPILER set)";
}

bool available() {
  return false;
}
int device_count() {
  return 0;
}
const char* describe_device(int, DeviceFigures&) {
  return kAbsent;
}
const char* workspace_need(int, const ModelView&, int, WorkspaceNeed&) {
  return kAbsent;
}
const char* open_stream(int, void**) {
  return kAbsent;
}
void close_stream(int, void*) {}
const char* allocate(int, unsigned long long, void**) {
  return kAbsent;
}
const char* zero(int, void*, void*, unsigned long long) {
  return kAbsent;
}
void release(int, void*) {}
const char* allocate_host(int, unsigned long long, void**) {
  return kAbsent;
}
void release_host(int, void*) {}
const char* upload(int, void*, void*, const void*, unsigned long long) {
  return kAbsent;
}
const char* download(int, void*, void*, const void*, unsigned long long) {
  return kAbsent;
}
const char* wait(int, void*) {
  return kAbsent;
}
const char* step(const Batch&, int) {
  return kAbsent;
}
const char* forward(const Batch&) {
  return kAbsent;
}
const char* reset(const Batch&, const Defaults&, const int*, int) {
  return kAbsent;
}
const char* scatter(int, void*, float*, long long, const float*, const int*, int, int) {
  return kAbsent;
}
const char* gather(int, void*, float*, const float*, long long, const int*, int, int) {
  return kAbsent;
}
const char* draw_controls(const Batch&, const ControlRange*, int, const ControlDraw&, int) {
  return kAbsent;
}

}  // namespace cohort::sim::cuda
