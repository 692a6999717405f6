/// NumPy arrays in and out. What goes out owns what it shows; what comes in is read where it lies.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "core/array_view.h"
#include "core/error.h"
#include "core/format.h"

namespace cohort::python {

template <class T>
using InArray = nanobind::ndarray<const T, nanobind::c_contig, nanobind::device::cpu>;
using InIndices = nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
std::span<const T> span_of(const InArray<T>& array) {
  return {array.data(), array.size()};
}
inline std::vector<std::int32_t> vector_of(const InIndices& array) {
  return {array.data(), array.data() + array.size()};
}

inline nanobind::dlpack::dtype dtype_of(ElementType type) {
  namespace nb = nanobind;
  switch (type) {
    case ElementType::kFloat32:
      return nb::dtype<float>();
    case ElementType::kFloat64:
      return nb::dtype<double>();
    case ElementType::kInt64:
      return nb::dtype<std::int64_t>();
    case ElementType::kInt32:
      return nb::dtype<std::int32_t>();
    case ElementType::kInt16:
      return nb::dtype<std::int16_t>();
    case ElementType::kUInt8:
      return nb::dtype<std::uint8_t>();
    case ElementType::kBool:
      return nb::dtype<bool>();
    default:
      throw Error(format("NumPy has no {}", element_name(type)));
  }
}

/// Calls `body` without the interpreter's lock.
template <class Body>
auto without_lock(const Body& body) {
  const nanobind::gil_scoped_release released;
  return body();
}

/// A NumPy array of that shape that owns the values.
template <class T>
nanobind::ndarray<nanobind::numpy, T> owned(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* const kept = new std::vector<T>(std::move(values));
  const nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {kept->data(), shape, owner};
}

}  // namespace cohort::python
