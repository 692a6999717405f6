/// Page-locked host memory for the loader, so that batches travel to a GPU without a copy in between and
/// asynchronously.
#pragma once
#include <map>
#include <mutex>

#include <c10/core/DeviceType.h>
#include <c10/core/Storage.h>

#include "core/allocator.h"

namespace cohort::tensors {

/// Takes memory from LibTorch's host allocator of the accelerator: tensors made over it count as pinned, and
/// Tensor::to(device, non_blocking) is asynchronous. Only for accelerators that are present (throws Error otherwise).
class PinnedAllocator final : public Allocator {
 public:
  explicit PinnedAllocator(c10::DeviceType accelerator);
  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;
  const char* name() const override { return "pinned memory"; }

 private:
  c10::DeviceType accelerator_;
  std::mutex mutex_;
  std::map<void*, c10::DataPtr> blocks_;
};

/// Pinned memory where `device` is an accelerator, ordinary host memory otherwise; lives as long as the process.
Allocator& host_allocator_for(c10::DeviceType device);

}  // namespace cohort::tensors
