#include "dist/nccl/device_reducer.h"

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/cuda/nccl.h>

namespace cohort::dist {
namespace {

namespace nccl = torch::cuda::nccl;

class NcclDeviceReducer : public DeviceReducer {
 public:
  NcclDeviceReducer(const std::vector<int>& devices, std::size_t buckets) {
    for (const int device : devices) {
      devices_.push_back(static_cast<c10::DeviceIndex>(device));
      // High priority: a sum should not queue behind the backward pass that it overlaps with.
      streams_.emplace_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, devices_.back()));
    }
    ready_.resize(buckets);
    for (auto& events : ready_) events = std::vector<at::cuda::CUDAEvent>(devices_.size());
  }

  void mark_ready(std::size_t bucket, std::size_t replica) override {
    ready_[bucket][replica].record(c10::cuda::getCurrentCUDAStream(devices_[replica]));
  }

  void reduce(std::size_t bucket, const std::vector<at::Tensor>& buffers) override {
    for (std::size_t r = 0; r < devices_.size(); ++r) ready_[bucket][r].block(*streams_[r]);
    at::Tensor sum = buffers[0];
    nccl::reduce(buffers, sum, /*root=*/0, static_cast<std::int32_t>(nccl::ncclRedOp::Sum), streams_);
  }

  void finish() override {
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      at::cuda::CUDAEvent done;
      done.record(*streams_[r]);
      done.block(c10::cuda::getCurrentCUDAStream(devices_[r]));
    }
  }

  void broadcast(const std::vector<at::Tensor>& buffers) override {
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      at::cuda::CUDAEvent before;
      before.record(c10::cuda::getCurrentCUDAStream(devices_[r]));
      before.block(*streams_[r]);
    }
    nccl::broadcast(buffers, streams_);
    finish();
  }

 private:
  std::vector<c10::DeviceIndex> devices_;
  nccl::stream_list streams_;
  std::vector<std::vector<at::cuda::CUDAEvent>> ready_;  // [bucket][replica]
};

}  // namespace

std::unique_ptr<DeviceReducer> make_nccl_device_reducer(const std::vector<int>& devices, std::size_t buckets) {
  return std::make_unique<NcclDeviceReducer>(devices, buckets);
}

}  // namespace cohort::dist
