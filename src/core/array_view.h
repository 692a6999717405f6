/// A view of memory that somebody else owns: element type, shape, strides, device and stream. The currency between
/// modules that do not know LibTorch and those that do (tensors/ converts without copies).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/error.h"

namespace cohort {

enum class ElementType : std::uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kUInt8,
  kBool
};

/// Bytes of one element.
std::size_t element_size(ElementType type);
/// "float32", "int64", ... as NumPy names them.
const char* element_name(ElementType type);

template <class T>
constexpr ElementType element_type_of();
template <>
constexpr ElementType element_type_of<float>() {
  return ElementType::kFloat32;
}
template <>
constexpr ElementType element_type_of<double>() {
  return ElementType::kFloat64;
}
template <>
constexpr ElementType element_type_of<std::int64_t>() {
  return ElementType::kInt64;
}
template <>
constexpr ElementType element_type_of<std::int32_t>() {
  return ElementType::kInt32;
}
template <>
constexpr ElementType element_type_of<std::uint8_t>() {
  return ElementType::kUInt8;
}

enum class DeviceKind : std::uint8_t { kCpu, kCuda, kMetal };

/// Where memory lies or work runs. index counts among the devices visible to the process.
struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  bool operator==(const DeviceId&) const = default;
};

/// "cpu", "cuda:1", "mps:0": the names LibTorch parses.
std::string to_string(DeviceId device);
/// Reads "cpu", "cuda", "cuda:1", "mps", "mps:0"; throws Error naming what is allowed.
DeviceId parse_device(const std::string& text);

inline constexpr int kMaxRank = 8;

/// Shape and strides are held inside, so that a view costs no allocation.
struct ArrayView {
  void* data = nullptr;
  ElementType type = ElementType::kFloat32;
  int rank = 0;                                  ///< number of dimensions, at most kMaxRank
  std::array<std::int64_t, kMaxRank> shape{};    ///< elements
  std::array<std::int64_t, kMaxRank> strides{};  ///< elements, not bytes
  DeviceId device{};
  void* stream = nullptr;  ///< CUDA stream on which the content becomes valid; null for the CPU

  std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * element_size(type); }
  bool contiguous() const;

  /// The elements of a contiguous CPU view; throws Error on another type, device or layout.
  template <class T>
  std::span<T> span() const {
    COHORT_CHECK(type == element_type_of<T>(), "the array holds {}, not {}", element_name(type),
                 element_name(element_type_of<T>()));
    COHORT_CHECK(device.kind == DeviceKind::kCpu && contiguous(), "only a contiguous array in host memory is a span");
    return {static_cast<T*>(data), static_cast<std::size_t>(size())};
  }
};

/// A contiguous row-major view.
ArrayView make_view(void* data, ElementType type, std::span<const std::int64_t> shape, DeviceId device = {});
template <class T>
ArrayView make_view(T* data, std::initializer_list<std::int64_t> shape) {
  return make_view(const_cast<void*>(static_cast<const void*>(data)), element_type_of<std::remove_const_t<T>>(),
                   std::span<const std::int64_t>(shape.begin(), shape.size()));
}

}  // namespace cohort
