/// Where large buffers come from. Modules that do not know LibTorch take their memory from an Allocator that is handed
/// to them: aligned host memory by default, page-locked memory where the LibTorch side passes its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"

namespace cohort {

/// Every allocation starts at a multiple of this many bytes: a cache line, and the widest vector register.
inline constexpr std::size_t kAllocationAlignment = 64;

class Allocator {
 public:
  virtual ~Allocator() = default;
  /// At least `bytes` bytes (0 counts as 1), aligned to kAllocationAlignment, with unspecified content. Throws Error
  /// naming the amount when there are none. Callable from any thread.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Takes back what allocate(bytes) returned. Callable from any thread.
  virtual void deallocate(void* memory, std::size_t bytes) noexcept = 0;
  /// "host memory", "pinned memory": for messages.
  virtual const char* name() const = 0;
};

/// Ordinary pageable memory of the process.
class HostAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    const std::size_t rounded = (bytes + kAllocationAlignment - 1) / kAllocationAlignment * kAllocationAlignment;
    void* memory = nullptr;
    if (rounded >= bytes)
      memory = std::aligned_alloc(kAllocationAlignment, rounded > 0 ? rounded : kAllocationAlignment);
    COHORT_THROW_UNLESS(memory != nullptr, "out of host memory: {} could not be allocated",
                        format_bytes(static_cast<double>(bytes)));
    return memory;
  }
  void deallocate(void* memory, std::size_t) noexcept override { std::free(memory); }
  const char* name() const override { return "host memory"; }
};

/// The process-wide HostAllocator; never destroyed.
inline Allocator& host_allocator() {
  static HostAllocator* allocator = new HostAllocator;
  return *allocator;
}

}  // namespace cohort
