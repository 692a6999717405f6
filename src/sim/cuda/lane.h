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

struct GpuLane {
  using V = float;
  using M = bool;
  using Ptr = LanePointer;
  static constexpr int kWidth = 1;
};

}  // namespace cohort::sim::cuda
