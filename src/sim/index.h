/// Indices of containers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cohort::sim {

/// A count or an index that is not negative, as containers take it.
constexpr std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace cohort::sim
