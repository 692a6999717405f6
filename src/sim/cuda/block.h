/// The memory in which a warp computes a block of 32 environments, and each thread's part of it. Also compiled for the
/// host: tests/sim/gpu_lane_test.cpp runs what a GPU thread runs.
#pragma once
#include "sim/cuda/lane.h"
#include "sim/kernels/step.h"

namespace cohort::sim::cuda {

COHORT_DEVICE inline unsigned long long round_up(unsigned long long n) {
  return (n + 255) / 256 * 256;
}

/// Pieces of a block's workspace, in bytes: values interleaved over the lanes; then each lane's groups and integers.
struct BlockBytes {
  unsigned long long values, groups, integers, bits;
  COHORT_DEVICE unsigned long long total() const { return values + groups + integers + bits; }
};
COHORT_DEVICE inline BlockBytes block_bytes(int values_per_lane, const IntegerSizes& n) {
  BlockBytes b;
  b.values = round_up(sizeof(float) * kLanes * static_cast<unsigned long long>(values_per_lane));
  b.groups = round_up(sizeof(Group) * kLanes * static_cast<unsigned long long>(n.groups));
  b.integers = round_up(sizeof(int) * kLanes * static_cast<unsigned long long>(n.cols + n.start));
  b.bits = round_up(sizeof(unsigned long long) * kLanes * static_cast<unsigned long long>(n.bits));
  return b;
}

/// Values of one lane, and the bytes of a block.
struct BlockNeed {
  int values_per_lane;
  unsigned long long bytes;
};
COHORT_DEVICE inline BlockNeed block_need(const ModelView& m) {
  BlockSpace<GpuLane> space;
  const int values = lay_out<GpuLane>(m, LanePointer{nullptr}, space);
  return {values, block_bytes(values, integer_sizes(m)).total()};
}

/// The workspace of thread `lane` in the block's piece of memory.
COHORT_DEVICE inline void prepare(const ModelView& m, char* memory, int lane, BlockSpace<GpuLane>& space) {
  const IntegerSizes n = integer_sizes(m);
  const int values = lay_out<GpuLane>(m, LanePointer{reinterpret_cast<float*>(memory) + lane}, space);
  const BlockBytes b = block_bytes(values, n);
  char* at = memory + b.values;
  space.c.group = reinterpret_cast<Group*>(at) + static_cast<long long>(lane) * n.groups;
  at += b.groups;
  space.s.cols = reinterpret_cast<int*>(at) + static_cast<long long>(lane) * (n.cols + n.start);
  space.s.start = space.s.cols + n.cols;
  at += b.integers;
  space.s.bits = reinterpret_cast<unsigned long long*>(at) + static_cast<long long>(lane) * n.bits;
}

}  // namespace cohort::sim::cuda
