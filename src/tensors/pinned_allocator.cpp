#include "tensors/pinned_allocator.h"

#include <torch/types.h>

namespace cohort::tensors {

PinnedAllocator::PinnedAllocator(c10::DeviceType accelerator) : accelerator_(accelerator) {
  const bool present = (accelerator == c10::kCUDA && at::hasCUDA()) || (accelerator == c10::kMPS && at::hasMPS());
  COHORT_THROW_UNLESS(present, "there is no pinned memory for {}: no such device is present",
                      c10::DeviceTypeName(accelerator, true));
}

void* PinnedAllocator::allocate(std::size_t bytes) {
  c10::DataPtr block = at::globalContext()
                           .getAcceleratorHooksInterface(accelerator_)
                           .getPinnedMemoryAllocator()
                           ->allocate(bytes > 0 ? bytes : 1);
  void* memory = block.get();
  COHORT_THROW_UNLESS(memory, "out of pinned host memory: {} could not be allocated",
                      format_bytes(static_cast<double>(bytes)));
  std::lock_guard lock(mutex_);
  blocks_.emplace(memory, std::move(block));
  return memory;
}

void PinnedAllocator::deallocate(void* memory, std::size_t) noexcept {
  std::lock_guard lock(mutex_);
  blocks_.erase(memory);
}

Allocator& host_allocator_for(c10::DeviceType device) {
  if (device != c10::kCUDA) return host_allocator();
  static PinnedAllocator* pinned = new PinnedAllocator(c10::kCUDA);  // never destroyed: leases may outlive main
  return *pinned;
}

}  // namespace cohort::tensors
