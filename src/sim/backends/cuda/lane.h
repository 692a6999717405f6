/// The lane of a GPU thread: one float, as ScalarLane's; but the workspaces of a warp's 32 threads lie interleaved,
/// [value][thread], so that the threads, which run the same loops over the model, touch neighbouring addresses.
#pragma once
#include "sim/kernels/lane/lane.h"

namespace cohort::sim::cuda {

/// Environments of a block: the threads of a warp.
inline constexpr int kLanes = 32;

/// Addresses the values of one thread. Offsets of a workspace fit into 31 bits: make_cuda_engine sees to it.
struct LanePointer {
  float* at;
  COHORT_LANE float& operator[](int i) const { return at[i * kLanes]; }
};
COHORT_LANE LanePointer operator+(LanePointer p, int n) {
  return {p.at + n * kLanes};
}

/// A thread's groups, integers or bits, interleaved likewise.
template <class T>
struct LaneItems {
  T* at;
  COHORT_LANE T& operator[](int i) const { return at[i * kLanes]; }
};
template <class T>
COHORT_LANE LaneItems<T> operator+(LaneItems<T> p, int n) {
  return {p.at + n * kLanes};
}
/// Integers of the model, one after the other for all threads, or a thread's own.
struct LaneIndices {
  const int* at;
  int stride;
  LaneIndices() = default;
  COHORT_LANE LaneIndices(const int* of_model) : at(of_model), stride(1) {}
  COHORT_LANE LaneIndices(LaneItems<int> own) : at(own.at), stride(kLanes) {}
  COHORT_LANE const int& operator[](int i) const { return at[i * stride]; }
};
COHORT_LANE LaneIndices operator+(LaneIndices p, int n) {
  p.at += n * p.stride;
  return p;
}

struct GpuLane {
  using V = float;
  using M = bool;
  using Ptr = LanePointer;
  static constexpr int kWidth = 1;
};

}  // namespace cohort::sim::cuda

namespace cohort::sim {

template <>
struct Addressing<cuda::GpuLane> {
  template <class T>
  using Own = cuda::LaneItems<T>;
  using Read = cuda::LaneIndices;
};

}  // namespace cohort::sim
