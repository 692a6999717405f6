/// Memory of a device, and page-locked memory of the host, as owners.
#pragma once
#include <cstddef>
#include <utility>

#include "core/error.h"
#include "sim/backends/cuda/runner.h"

namespace cohort::sim::cuda {

/// Throws Error for a reason that a function of runner.h gave.
inline void need(const char* why, int device, const char* what) {
  COHORT_THROW_UNLESS(why == nullptr, "cuda:{}: {}: {}", device, what, why);
}

/// Owns what `Release` gives back.
template <void (*Release)(int, void*)>
class Owned {
 public:
  Owned() = default;
  Owned(int device, void* memory) : device_(device), memory_(memory) {}
  Owned(Owned&& other) noexcept : device_(other.device_), memory_(std::exchange(other.memory_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Owned() {
    if (memory_ != nullptr) Release(device_, memory_);
  }
  void* get() const { return memory_; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  int device_ = 0;
  void* memory_ = nullptr;
};
using DeviceMemory = Owned<release>;
using HostMemory = Owned<release_host>;
using Stream = Owned<close_stream>;

inline Stream make_stream(int device) {
  void* stream = nullptr;
  need(open_stream(device, &stream), device, "a stream cannot be made");
  return Stream(device, stream);
}
/// Holds anything; at least one byte, so that nothing is null.
inline DeviceMemory make_device_scratch(int device, std::size_t bytes) {
  void* memory = nullptr;
  need(allocate(device, bytes > 0 ? bytes : 1, &memory), device, "memory cannot be had");
  return DeviceMemory(device, memory);
}
/// Zeros.
inline DeviceMemory make_device_memory(int device, void* stream, std::size_t bytes) {
  DeviceMemory memory = make_device_scratch(device, bytes);
  need(zero(device, stream, memory.get(), bytes), device, "memory cannot be cleared");
  return memory;
}
inline HostMemory make_host_memory(int device, std::size_t bytes) {
  void* memory = nullptr;
  need(allocate_host(device, bytes > 0 ? bytes : 1, &memory), device, "page-locked memory cannot be had");
  return HostMemory(device, memory);
}

}  // namespace cohort::sim::cuda
