/// Remembered separating directions: two shapes that a search found apart mostly are still apart along the same
/// direction in the next step, which is cheaper to see than to search again (temporal coherence as in van den Bergen
/// 1999). What is found here changes no result, only who is searched: along the direction the shapes are apart by more
/// than the reach with room for rounding. The directions are therefore no part of an environment's state, and pairs may
/// share one: each overwrites the other's, and both are still right.
#pragma once
#include "sim/kernels/collide/collide.h"

namespace cohort::sim {

/// How far a shape reaches from its origin in a direction of its own frame.
template <class L>
COHORT_KERNEL typename L::V extent(const ModelView& m, const GeomRecord& g, const typename L::V* d) {
  using V = typename L::V;
  const float* size = g.size;
  switch (g.shape) {
    case kSphere:
      return V(size[0]);
    case kCapsule:
      return fma(abs(d[2]), V(size[1]), V(size[0]));
    case kEllipsoid: {
      const V scaled[3] = {d[0] * V(size[0]), d[1] * V(size[1]), d[2] * V(size[2])};
      return sqrt(dot3(scaled, scaled));
    }
    case kCylinder:
      return fma(abs(d[2]), V(size[1]), V(size[0]) * sqrt(fma(d[0], d[0], d[1] * d[1])));
    case kBox:
      return fma(abs(d[0]), V(size[0]), fma(abs(d[1]), V(size[1]), abs(d[2]) * V(size[2])));
    default:
      break;
  }
  const MeshRecord& mesh = m.mesh[g.data];
  const float* block = m.mesh_vertex + mesh.first_vertex;
  // Several sums at a time: one would wait for itself.
  constexpr int kChains = 4;
  V farthest[kChains];
  for (V& f : farthest) f = V(-3e38f);
  for (int first = 0; first < mesh.vertex_count; first += kVertexBlock, block += 3 * kVertexBlock) {
    const int count = mesh.vertex_count - first < kVertexBlock ? mesh.vertex_count - first : kVertexBlock;
    for (int i = 0; i < count; i += kChains) {
      for (int k = 0; k < kChains; ++k) {
        // A block is filled up with its first vertex.
        const float* v = block + i + k;
        const V height = fma(d[0], V(v[0]), fma(d[1], V(v[kVertexBlock]), d[2] * V(v[2 * kVertexBlock])));
        farthest[k] = max(farthest[k], height);
      }
    }
  }
  return max(max(farthest[0], farthest[1]), max(farthest[2], farthest[3]));
}

/// Lanes of `near` that the direction in `local` (second geom's frame) does not show to be apart by more than `reach`.
template <class L>
COHORT_KERNEL typename L::M not_separated(const ModelView& m, const GeomRecord& g1, const GeomRecord& g2,
                                          const PairPose<typename L::V>& pose, const typename L::V* local, float reach,
                                          typename L::M near) {
  using V = typename L::V;
  V world[3], d[3], opposite[3];
  rotate(world, pose.rot2, local);
  for (int i = 0; i < 3; ++i) d[i] = pose.pos1[i] - pose.pos2[i], opposite[i] = -world[i];
  V between = dot3(world, d) - extent<L>(m, g2, local);
  if (g1.shape == kCapsule) {
    // Of a capsule only the axis is known, of a sphere nothing.
    const V axis[3] = {pose.rot1[2], pose.rot1[5], pose.rot1[8]};
    opposite[2] = dot3(axis, opposite);
  } else if (g1.shape != kSphere) {
    V turned[3];
    rotate_back(turned, pose.rot1, opposite);
    for (int i = 0; i < 3; ++i) opposite[i] = turned[i];
  }
  between = between - extent<L>(m, g1, opposite);
  // Rounding is a tenth of this. Without a direction nothing is between.
  return near & flip(between > V(reach + 1e-5f * (g1.radius + g2.radius + reach)));
}

}  // namespace cohort::sim
