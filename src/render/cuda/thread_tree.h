/// How a GPU's thread walks a mesh's tree: by itself, a level's place on its stack of one word for each of two: the
/// node, and the order of those of its children that are still to be looked at. Also compiled for the host, for tests.
#pragma once
#include "render/kernels/mesh.h"

namespace cohort::render {
namespace cuda {

/// Stands where a CPU's code names eight lanes.
struct ThreadTree {};

/// Children of a node that a ray meets, nearest first: three bits each, and how many from bit 24 on.
COHORT_LANE unsigned children_met(const NodeRecord& node, const Ray<float>& r, const Vector3<float>& inverse, float pad,
                                  float from, float most) {
  float first[8];
  unsigned met = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < 8; ++i) {
    const float ax = (node.low[0][i] - (r.origin.x + pad)) * inverse.x;
    const float bx = (node.high[0][i] - (r.origin.x - pad)) * inverse.x;
    const float ay = (node.low[1][i] - (r.origin.y + pad)) * inverse.y;
    const float by = (node.high[1][i] - (r.origin.y - pad)) * inverse.y;
    const float az = (node.low[2][i] - (r.origin.z + pad)) * inverse.z;
    const float bz = (node.high[2][i] - (r.origin.z - pad)) * inverse.z;
    const float in = max(max(min(ax, bx), min(ay, by)), max(min(az, bz), from));
    const float out = min(min(max(ax, bx), max(ay, by)), min(max(az, bz), most));
    first[i] = in;
    // An empty place's box ends before it begins.
    const bool there = node.low[0][i] <= node.high[0][i];
    met |= there && in <= out * 1.000001f ? 1u << i : 0u;
  }
  // Each child's place is the number of those before it: no array is reached by a changing index.
  unsigned order = 0, count = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < 8; ++i) {
    if ((met >> i & 1u) == 0) continue;
    unsigned before = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int k = 0; k < 8; ++k) {
      const bool is_before = first[k] < first[i] || (first[k] == first[i] && k < i);
      before += (met >> k & 1u) != 0 && is_before ? 1u : 0u;
    }
    order |= static_cast<unsigned>(i) << (3 * before);
    ++count;
  }
  return order | count << 24;
}

COHORT_LANE void meet_block_alone(const TriangleBlock& block, const Ray<float>& r, bool both, float from,
                                  TriangleHit& hit) {
  for (int i = 0; i < 8; ++i) {
    const Vector3<float> a{block.corner[0][i], block.corner[1][i], block.corner[2][i]};
    const Vector3<float> e1{block.edge1[0][i], block.edge1[1][i], block.edge1[2][i]};
    const Vector3<float> e2{block.edge2[0][i], block.edge2[1][i], block.edge2[2][i]};
    float t, u, v;
    if (!meet_triangles(a, e1, e2, r, both, from, hit.t, t, u, v)) continue;
    if (t < hit.t || block.triangle[i] > hit.triangle) hit = {t, u, v, block.triangle[i]};
  }
}

}  // namespace cuda

template <>
inline COHORT_KERNEL TriangleHit meet_mesh<cuda::ThreadTree>(const MeshRecord& mesh, const float* origin,
                                                             const float* direction, float from, float most, bool both,
                                                             bool first_found) {
  TriangleHit hit;
  hit.t = most;
  const Ray<float> r{{origin[0], origin[1], origin[2]}, {direction[0], direction[1], direction[2]}};
  if (mesh.node == nullptr) {
    for (int i = 0; i < mesh.blocks; ++i) cuda::meet_block_alone(mesh.block[i], r, both, from, hit);
    return hit;
  }
  const float pad = box_padding(mesh, origin);
  const Vector3<float> inverse{1.0f / not_zero(direction[0]), 1.0f / not_zero(direction[1]),
                               1.0f / not_zero(direction[2])};
  int node[sim::kMostTreeLevels];
  unsigned left[sim::kMostTreeLevels];
  int level = 0;
  node[0] = 0, left[0] = cuda::children_met(mesh.node[0], r, inverse, pad, from, hit.t);
  while (level >= 0) {
    const unsigned order = left[level];
    if (order >> 24 == 0) {
      --level;
      continue;
    }
    left[level] = ((order & 0xffffffu) >> 3) | ((order >> 24) - 1u) << 24;
    const int child = mesh.node[node[level]].child[order & 7u];
    if (child < 0) {
      cuda::meet_block_alone(mesh.block[~child], r, both, from, hit);
      if (first_found && hit.triangle >= 0) return hit;
      continue;
    }
    // What was met since may hide all of it.
    const unsigned below = cuda::children_met(mesh.node[child], r, inverse, pad, from, hit.t);
    if (below >> 24 == 0) continue;
    ++level;
    node[level] = child, left[level] = below;
  }
  return hit;
}

}  // namespace cohort::render
