#include "tensors/pinned_allocator.h"

#include <mutex>
#include <unordered_map>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/torch.h>

#include "core/error.h"

namespace cohort::tensors {
namespace {

class PinnedAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    at::DataPtr memory;
    try {
      memory = at::getHostAllocator(at::kCUDA)->allocate(std::max(bytes, kAllocationAlignment));
    } catch (const c10::Error& e) {
      throw Error(
          format("out of page-locked host memory: {} could not be allocated ({}); lower the loader's memory budget",
                 format_bytes(static_cast<double>(bytes)), e.what_without_backtrace()));
    }
    void* address = memory.get();
    COHORT_CHECK(reinterpret_cast<std::uintptr_t>(address) % kAllocationAlignment == 0,
                 "page-locked memory is aligned to less than {} bytes", kAllocationAlignment);
    const std::scoped_lock lock(mutex_);
    held_.emplace(address, std::move(memory));
    return address;
  }

  void deallocate(void* memory, std::size_t) noexcept override {
    at::DataPtr released;
    const std::scoped_lock lock(mutex_);
    const auto found = held_.find(memory);
    if (found == held_.end()) return;
    released = std::move(found->second);
    held_.erase(found);
  }

  const char* name() const override { return "page-locked memory"; }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, at::DataPtr> held_;
};

}  // namespace

Allocator& batch_allocator(bool for_cuda) {
  if (!for_cuda || !at::detail::getCUDAHooks().hasCUDA() || at::detail::getCUDAHooks().deviceCount() == 0) {
    return host_allocator();
  }
  static auto* allocator = new PinnedAllocator;
  return *allocator;
}

}  // namespace cohort::tensors
