// The file that nvcc compiles for GPUs, for the host: what a device's thread runs, launches, copies, graphs.
#define COHORT_SEARCHES_IN_PLACE
#include "sim/backends/cuda/runner.cu"

#include "sim/host_cuda/host_cuda.h"

namespace cohort::sim::cuda {
namespace {

/// The kernels' shared memory: as much as a block may ask for on any device.
float hot[(96 << 10) / sizeof(float)];
[[maybe_unused]] const bool kUsed = (host_cuda::use_shared_memory(hot, sizeof hot), true);

}  // namespace
}  // namespace cohort::sim::cuda

namespace cohort::host_cuda {

long long solved_by_teams() {
  return sim::cuda::host_solutions;
}

}  // namespace cohort::host_cuda
