/// What files for nvcc share: a device made current for a while, CUDA's answers as text, launches.
#pragma once
#include <cuda_runtime.h>

namespace cohort::sim::cuda {

/// Makes a device current as long as it lives; the caller's own comes back afterwards.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    status_ = cudaGetDevice(&before_);
    if (status_ == cudaSuccess && before_ != device) {
      status_ = cudaSetDevice(device);
      changed_ = status_ == cudaSuccess;
    }
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  cudaError_t status() const { return status_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t status_;
};

inline const char* text(cudaError_t status) {
  if (status == cudaSuccess) return nullptr;
  // A failed call, unlike a failed kernel, must not be what the next check of a launch reports.
  cudaGetLastError();
  return cudaGetErrorString(status);
}

inline cudaStream_t stream_of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

/// Puts a kernel on a stream; its device is current. By a call and not by triple angle brackets, so that tests compile
/// the callers for the host.
template <class... P, class... A>
cudaError_t launch_on(void* stream, unsigned blocks, unsigned threads, size_t shared_bytes, void (*kernel)(P...),
                      A... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim.x = blocks;
  config.blockDim.x = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream_of(stream);
  // Its own answer: what cudaGetLastError() has may be of a caller's earlier call.
  return cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
}

}  // namespace cohort::sim::cuda
