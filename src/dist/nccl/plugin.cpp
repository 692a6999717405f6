// libcohort_cuda.so: everything of Cohort that links libtorch_cuda: NCCL, devices, graphs. Loaded by dist/cuda_plugin.cpp.
#include <cuda_runtime_api.h>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/cuda/PeerToPeerAccess.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "dist/cuda_plugin.h"
#include "dist/nccl/device_reducer.h"

namespace cohort::dist {
namespace {

c10::DeviceIndex index_of(int device) {
  return static_cast<c10::DeviceIndex>(device);
}

int device_count(std::string& why_none) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  (void)cudaGetLastError();  // the failed question must not surface in a later call
  why_none = status == cudaSuccess ? "no device is visible" : cudaGetErrorString(status);
  return 0;
}

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout, int device) {
  c10::cuda::set_device(index_of(device));
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  options->group_name = std::string("0");
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, world_size, options);
}

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(int device)
      : device_(index_of(device)), stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_)) {}

  void warm_up(const std::function<void()>& work) override { on_own_stream(work); }

  void record(const std::function<void()>& work) override {
    {
      const c10::cuda::CUDAGuard guard(device_);
      c10::cuda::device_synchronize();
    }
    on_own_stream([&] {
      // Only this thread's calls are watched: loaders may pin memory meanwhile.
      graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      try {
        work();
      } catch (...) {
        try {
          graph_.capture_end();
        } catch (const std::exception&) {
          // The first failure is the one to tell.
        }
        (void)cudaGetLastError();
        throw;
      }
      graph_.capture_end();
    });
  }

  void replay() override {
    const c10::cuda::CUDAGuard guard(device_);
    graph_.replay();
  }

 private:
  static void wait(const c10::cuda::CUDAStream& waiting, const c10::cuda::CUDAStream& on) {
    at::cuda::CUDAEvent event;
    event.record(on);
    event.block(waiting);
  }

  void on_own_stream(const std::function<void()>& work) {
    const c10::cuda::CUDAGuard guard(device_);
    const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device_);
    wait(stream_, current);
    try {
      const c10::cuda::CUDAStreamGuard stream(stream_);
      work();
    } catch (...) {
      wait(current, stream_);
      throw;
    }
    wait(current, stream_);
  }

  c10::DeviceIndex device_;
  c10::cuda::CUDAStream stream_;
  at::cuda::CUDAGraph graph_;
};

std::unique_ptr<DeviceGraph> make_graph(int device) {
  return std::make_unique<CudaGraph>(device);
}

void set_device(int device) {
  c10::cuda::set_device(index_of(device));
}

void synchronise(int device) {
  const c10::cuda::CUDAGuard guard(index_of(device));
  c10::cuda::device_synchronize();
}

void wait_for_device(int waiting, int on) {
  at::cuda::CUDAEvent event;
  event.record(c10::cuda::getCurrentCUDAStream(index_of(on)));
  event.block(c10::cuda::getCurrentCUDAStream(index_of(waiting)));
}

bool peer_access(int device, int peer) {
  return at::cuda::get_p2p_access(index_of(device), index_of(peer));
}

std::string device_uuid(int device) {
  const auto& bytes = at::cuda::getDeviceProperties(index_of(device))->uuid.bytes;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

constexpr CudaPlugin kPlugin{
    .interface_version = kCudaPluginVersion,
    .device_count = device_count,
    .make_nccl_backend = make_nccl_backend,
    .make_device_reducer = make_nccl_device_reducer,
    .make_graph = make_graph,
    .set_device = set_device,
    .synchronise = synchronise,
    .wait_for_device = wait_for_device,
    .peer_access = peer_access,
    .device_uuid = device_uuid,
};

}  // namespace
}  // namespace cohort::dist

extern "C" __attribute__((visibility("default"))) const cohort::dist::CudaPlugin* cohort_cuda_plugin() {
  return &cohort::dist::kPlugin;
}
