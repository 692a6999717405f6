/// Elements of arrays whose numbers are float or double: an engine of ours computes in float32, MuJoCo's in float64,
/// and whoever reads or writes their fields and parameters need not know which.
#pragma once
#include <cstdint>

#include "core/array_view.h"

namespace cohort {

/// The element at (row, column) of a (n, size) view in host memory, float32 or float64.
inline double real_at(const ArrayView& view, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * view.strides[0] + column * view.strides[1];
  return view.type == ElementType::kFloat64 ? static_cast<const double*>(view.data)[at]
                                            : static_cast<double>(static_cast<const float*>(view.data)[at]);
}

inline void set_real_at(const ArrayView& view, std::int64_t row, std::int64_t column, double value) {
  const std::int64_t at = row * view.strides[0] + column * view.strides[1];
  if (view.type == ElementType::kFloat64)
    static_cast<double*>(view.data)[at] = value;
  else
    static_cast<float*>(view.data)[at] = static_cast<float>(value);
}

}  // namespace cohort
