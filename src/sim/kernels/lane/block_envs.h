/// Which environments of the memory a block's lanes hold.
#pragma once
#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

/// Those from `first` on or, where there is one, those of a list.
struct BlockEnvs {
  int first = 0;
  const int* list = nullptr;  ///< aligned as a register of as many ints
  COHORT_DEVICE int operator[](int lane) const { return list != nullptr ? list[lane] : first + lane; }
};

/// The lanes' values of a row over all environments.
template <class L>
COHORT_LANE typename L::V load_of(const float* row, const BlockEnvs& envs) {
  typename L::V* const type = nullptr;
  if constexpr (L::kWidth > 1) {
    if (envs.list != nullptr) return gather(row, envs.list, type);
  }
  return load(row + envs.first, type);
}
template <class L>
COHORT_LANE void store_of(float* row, const BlockEnvs& envs, typename L::V value) {
  if constexpr (L::kWidth > 1) {
    if (envs.list != nullptr) return scatter(row, envs.list, value);
  }
  store(row + envs.first, value);
}

}  // namespace cohort::sim
