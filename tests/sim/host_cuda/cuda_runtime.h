/// Stands in for CUDA's header of this name where tests compile sim/backends/cuda/runner.cu for the host (runner.cpp): as much
/// of the runtime as that file calls, over "devices" made of the host's memory. What a program may rely on is done as
/// CUDA documents it, and what it may not rely on is made to fail.
///
/// A device's memory is closed to the host and to the other devices, but for copies and kernels; it holds NaN until it
/// is written, and ends at a page that is never open.
///
/// A block's shared memory holds NaN when the block begins; what lies behind what it asked for must stay so. More than
/// 48 KiB has to be allowed for the kernel on the device before, and a carve-out is a percentage.
///
/// Work that is put on a stream waits there until somebody waits for it, copies from page-locked memory too.
///
/// A launch on a stream of another device, any work on the default stream, an allocation or a wait during a capture, a
/// copy past an allocation's end are errors.
///
/// Threads of a launch run one after the other: enough for kernels without barriers, which ours are.
#pragma once
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __grid_constant__
#define __shared__
#define __launch_bounds__(...)

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidConfiguration,
  cudaErrorInvalidDevice,
  cudaErrorInvalidResourceHandle,
  cudaErrorIllegalAddress,
  cudaErrorStreamCaptureUnsupported,
  cudaErrorStreamCaptureInvalidated,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxThreadsPerMultiProcessor,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrReservedSharedMemoryPerBlock,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
inline constexpr unsigned cudaStreamNonBlocking = 1;

namespace cohort::host_cuda {
struct Stream;
struct Graph;
}  // namespace cohort::host_cuda
using cudaStream_t = cohort::host_cuda::Stream*;
using cudaGraph_t = cohort::host_cuda::Graph*;
using cudaGraphExec_t = cohort::host_cuda::Graph*;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct cudaDeviceProp {
  char name[256];
  int multiProcessorCount;
};
struct cudaFuncAttributes {
  std::size_t localSizeBytes;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device);
cudaError_t cudaDeviceGetAttribute(int* out, cudaDeviceAttr attribute, int device);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMalloc(void** out, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocHost(void** out, std::size_t bytes);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

namespace cohort::host_cuda {
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread);
cudaError_t set_attribute(const void* kernel, cudaFuncAttribute attribute, int value);
}  // namespace cohort::host_cuda

template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, Kernel*) {
  out->localSizeBytes = 4096;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  return cohort::host_cuda::set_attribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, Kernel*, int, std::size_t) {
  *out = 2;
  return cudaSuccess;
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  // A launch takes copies of its arguments.
  return cohort::host_cuda::launch(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, copies = std::tuple<P...>(std::forward<A>(arguments)...)] { std::apply(kernel, copies); });
}
