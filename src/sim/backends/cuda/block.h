/// The memory in which a warp computes a block of 32 environments, and each thread's part of it. Also compiled for the
/// host: sim_host_cuda_test runs what a GPU thread runs.
#pragma once
#include "sim/backends/cuda/lane.h"
#include "sim/backends/cuda/runner.h"
#include "sim/backends/cuda/team.h"
#include "sim/kernels/collide/convex/search_space.h"
#include "sim/kernels/step.h"

namespace cohort::sim {

/// Hot pieces lie in shared memory, first come first served, as far as it goes: what is written to it stays there,
/// while the rest of a multiprocessor's workspaces is too much for its caches.
template <>
struct Arena<cuda::GpuLane> {
  cuda::LanePointer base, hot_base;
  int most_hot = 0;
  int used = 0, hot = 0;
  COHORT_LANE cuda::LanePointer take(int n) {
    const cuda::LanePointer piece = base + used;
    used += n;
    return piece;
  }
  COHORT_LANE cuda::LanePointer take_hot(int n) {
    if (n > most_hot - hot) return take(n);
    const cuda::LanePointer piece = hot_base + hot;
    hot += n;
    return piece;
  }
};

}  // namespace cohort::sim
namespace cohort::sim::cuda {

COHORT_DEVICE inline unsigned long long round_up(unsigned long long n) {
  return (n + 255) / 256 * 256;
}

/// Memory of a thread that searches over convex shapes; none for models without such pairs.
inline unsigned long long search_bytes(const ModelView& m) {
  for (int i = 0; i < m.npair; ++i) {
    const int kernel = m.pair[i].kernel;
    if (kernel == kConvexConvex || kernel == kHeightFieldConvex) return (sizeof(collide::SearchSpace) + 15) / 16 * 16;
  }
  for (int i = 0; i < m.ndistance; ++i) {
    if (m.distance[i].pair.kernel >= kFirstQueued) return (sizeof(collide::SearchSpace) + 15) / 16 * 16;
  }
  return 0;
}

/// Pieces of a block's workspace, in bytes: values, groups, integers and bits, each interleaved over the lanes; then
/// each lane's search.
struct BlockBytes {
  unsigned long long values, groups, integers, bits, search;
  COHORT_DEVICE unsigned long long total() const { return values + groups + integers + bits + search; }
};
COHORT_DEVICE inline BlockBytes block_bytes(int values_per_lane, const IntegerSizes& n,
                                            unsigned long long search_of_lane) {
  BlockBytes b;
  b.values = round_up(sizeof(float) * kLanes * static_cast<unsigned long long>(values_per_lane));
  b.groups = round_up(sizeof(Group) * kLanes * static_cast<unsigned long long>(n.groups));
  b.integers = round_up(sizeof(int) * kLanes * static_cast<unsigned long long>(n.cols + n.start));
  b.bits = round_up(sizeof(unsigned long long) * kLanes * static_cast<unsigned long long>(n.bits));
  b.search = round_up(kLanes * search_of_lane);
  return b;
}

/// m in host memory. most_hot: values that a lane may have in shared memory.
inline BlockPlan plan_block(const ModelView& m, int most_hot) {
  BlockPlan plan;
  plan.most = constraint_capacity(m, 1);
  plan.search_bytes = search_bytes(m);
  BlockSpace<GpuLane> space;
  Arena<GpuLane> values{LanePointer{nullptr}, LanePointer{nullptr}, most_hot};
  lay_out<GpuLane>(m, plan.most, values, space);
  plan.values_per_lane = values.used;
  plan.hot_per_lane = values.hot;
  plan.bytes = block_bytes(values.used, integer_sizes(m, plan.most), plan.search_bytes).total();
  return plan;
}

/// The workspace of thread `lane` in the block's memory and in its shared memory `hot`, which hold as much as the plan
/// says.
COHORT_DEVICE inline void prepare(const ModelView& m, const BlockPlan& plan, char* memory, float* hot, int lane,
                                  BlockSpace<GpuLane>& space) {
  const IntegerSizes n = integer_sizes(m, plan.most);
  Arena<GpuLane> values{LanePointer{reinterpret_cast<float*>(memory) + lane}, LanePointer{hot + lane},
                        plan.hot_per_lane};
  lay_out<GpuLane>(m, plan.most, values, space);
  const BlockBytes b = block_bytes(values.used, n, plan.search_bytes);
  char* at = memory + b.values;
  space.c.group = {reinterpret_cast<Group*>(at) + lane};
  at += b.groups;
  space.s.cols = {reinterpret_cast<int*>(at) + lane};
  space.s.start = space.s.cols + n.cols;
  at += b.integers;
  space.s.bits = {reinterpret_cast<unsigned long long*>(at) + lane};
  at += b.bits;
  space.c.search = at + static_cast<unsigned long long>(lane) * plan.search_bytes;
}

}  // namespace cohort::sim::cuda
