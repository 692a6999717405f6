/// The vertex of a mesh that lies farthest in a direction, for one environment: as many vertices at once as there are
/// lanes.
#pragma once
#include "sim/kernels/collide/convex/queued.h"
#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

/// FarthestVertex (queued.h).
template <class L>
COHORT_KERNEL int farthest_vertex(const float* blocks, int count, float x, float y, float z) {
  using V = typename L::V;
  const V dx(x), dy(y), dz(z), step(static_cast<float>(L::kWidth));
  alignas(64) float first[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) first[i] = static_cast<float>(i);
  V index = load(first, static_cast<V*>(nullptr)), best(-3e38f), at(0.0f);
  // A block is filled up with its first vertex: the padding never wins against it.
  for (int block = 0; block < count; block += kVertexBlock, blocks += 3 * kVertexBlock) {
    for (int i = 0; i < kVertexBlock; i += L::kWidth) {
      const V px = load_anywhere(blocks + i, static_cast<V*>(nullptr));
      const V py = load_anywhere(blocks + kVertexBlock + i, static_cast<V*>(nullptr));
      const V pz = load_anywhere(blocks + 2 * kVertexBlock + i, static_cast<V*>(nullptr));
      const V height = fma(px, dx, fma(py, dy, pz * dz));
      const auto higher = height > best;
      best = select(higher, height, best);
      at = select(higher, index, at);
      index = index + step;
    }
  }
  if constexpr (L::kWidth == 1) return static_cast<int>(at);
  // Of the lanes that are highest, the first vertex.
  alignas(64) float places[L::kWidth];
  store(places, at);
  unsigned highest = lane_bits(best == V(largest_lane(best)));
  float where = places[lowest_bit(highest)];
  for (highest &= highest - 1; highest != 0; highest &= highest - 1) {
    const float other = places[lowest_bit(highest)];
    where = other < where ? other : where;
  }
  return static_cast<int>(where);
}

/// The same as a pointer; null in a GPU's code, which calls it by name.
template <class L>
COHORT_LANE FarthestVertex farthest_function() {
#if defined(__CUDA_ARCH__)
  return nullptr;
#else
  return farthest_vertex<L>;
#endif
}

}  // namespace cohort::sim
