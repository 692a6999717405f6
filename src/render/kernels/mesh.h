/// The first triangle of a mesh that a ray meets, by a tree of eight children a node. Boxes and triangles are tested
/// eight at a time (Eight: a lane policy of eight floats), one ray after the other: triangles are often smaller than a
/// pixel, and rays next to each other then meet different ones.
#pragma once
#include "render/kernels/shapes.h"

namespace cohort::render {

struct TriangleHit {
  float t = kMiss, u = 0, v = 0;
  int triangle = -1;
};

/// Triangles of a corner and two edges that the ray meets in (from, most], by Moeller and Trumbore, 1997. both: from
/// behind too.
template <class V>
COHORT_LANE auto meet_triangles(const Vector3<V>& a, const Vector3<V>& e1, const Vector3<V>& e2, const Ray<V>& r,
                                bool both, float from, float most, V& t, V& u, V& v) {
  const Vector3<V> p = cross(r.direction, e2);
  const V det = dot(e1, p);
  auto met = det > V(0.0f);
  if (both) met = det != V(0.0f);
  if (!any(met)) return met;
  const V inverse = V(1.0f) / select(met, det, V(1.0f));
  const Vector3<V> s = r.origin - a;
  u = dot(s, p) * inverse;
  const Vector3<V> q = cross(s, e1);
  v = dot(r.direction, q) * inverse;
  t = dot(e2, q) * inverse;
  const V slack(-1e-6f);  // edges that two triangles share leave no gap
  met = met & (u >= slack) & (v >= slack) & (u + v <= V(1.000001f)) & (t > V(from)) & (t <= V(most));
  return met;
}

/// Triangles of a block. Of two at the same t the one with the larger number counts, in whatever order they are met.
template <class Eight>
COHORT_LANE void meet_block(const TriangleBlock& block, const Ray<typename Eight::V>& r, bool both, float from,
                            TriangleHit& hit) {
  using V = typename Eight::V;
  const auto row = [](const float* p) { return load_anywhere(p, static_cast<V*>(nullptr)); };
  const Vector3<V> a{row(block.corner[0]), row(block.corner[1]), row(block.corner[2])};
  const Vector3<V> e1{row(block.edge1[0]), row(block.edge1[1]), row(block.edge1[2])};
  const Vector3<V> e2{row(block.edge2[0]), row(block.edge2[1]), row(block.edge2[2])};
  V t, u, v;
  const auto met = meet_triangles(a, e1, e2, r, both, from, hit.t, t, u, v);
  each_lane(met, [&](int i) {
    const float ti = get_lane(t, i);
    if (ti < hit.t || (ti == hit.t && block.triangle[i] > hit.triangle)) {
      hit = {ti, get_lane(u, i), get_lane(v, i), block.triangle[i]};
    }
  });
}

/// Boxes are a little larger than their triangles: by the rounding of a ray that starts far away.
COHORT_LANE float box_padding(const MeshRecord& mesh, const float* origin) {
  float reach = 0;
  for (int i = 0; i < 3; ++i) {
    reach = sim::max(reach, sim::abs(origin[i]));
    reach = sim::max(reach, sim::max(sim::abs(mesh.low[i]), sim::abs(mesh.high[i])));
  }
  return 2e-6f * reach;
}

/// The first triangle in (from, most]; with `first_found`, any. A GPU's thread walks the tree in its own way
/// (cuda/thread_tree.h): which triangles are looked at is in no result.
template <class Eight>
COHORT_KERNEL TriangleHit meet_mesh(const MeshRecord& mesh, const float* origin, const float* direction, float from,
                                    float most, bool both, bool first_found) {
  using V = typename Eight::V;
  TriangleHit hit;
  hit.t = most;
  const float pad = box_padding(mesh, origin);
  const Ray<V> r{spread<V>(origin), spread<V>(direction)};
  if (mesh.node == nullptr) {
    for (int i = 0; i < mesh.blocks; ++i) meet_block<Eight>(mesh.block[i], r, both, from, hit);
    return hit;
  }
  const Vector3<V> inverse{V(1.0f / not_zero(direction[0])), V(1.0f / not_zero(direction[1])),
                           V(1.0f / not_zero(direction[2]))};
  const Vector3<V> above{r.origin.x + V(pad), r.origin.y + V(pad), r.origin.z + V(pad)};
  const Vector3<V> below{r.origin.x - V(pad), r.origin.y - V(pad), r.origin.z - V(pad)};
  constexpr int kDepth = 7 * sim::kMostTreeLevels + 1;
  int stack[kDepth];
  float stack_t[kDepth];
  int top = 0;
  stack[top] = 0, stack_t[top++] = from;
  while (top > 0) {
    const int at = stack[--top];
    if (stack_t[top] > hit.t) continue;
    if (at < 0) {
      meet_block<Eight>(mesh.block[~at], r, both, from, hit);
      if (first_found && hit.triangle >= 0) return hit;
      continue;
    }
    const NodeRecord& node = mesh.node[at];
    const auto row = [](const float* p) { return load_anywhere(p, static_cast<V*>(nullptr)); };
    const V ax = (row(node.low[0]) - above.x) * inverse.x, bx = (row(node.high[0]) - below.x) * inverse.x;
    const V ay = (row(node.low[1]) - above.y) * inverse.y, by = (row(node.high[1]) - below.y) * inverse.y;
    const V az = (row(node.low[2]) - above.z) * inverse.z, bz = (row(node.high[2]) - below.z) * inverse.z;
    const V in = max(max(min(ax, bx), min(ay, by)), max(min(az, bz), V(from)));
    const V out = min(min(max(ax, bx), max(ay, by)), min(max(az, bz), V(hit.t)));
    // The far children first, so that the nearest is taken next. An empty place's box ends before it begins.
    const int begin = top;
    alignas(32) float first[8];
    store(first, in);
    each_lane(in <= out * V(1.000001f), [&](int i) {
      if (node.low[0][i] > node.high[0][i]) return;
      const float t = first[i];
      int place = top++;
      for (; place > begin && stack_t[place - 1] < t; --place) {
        stack[place] = stack[place - 1], stack_t[place] = stack_t[place - 1];
      }
      stack[place] = node.child[i], stack_t[place] = t;
    });
  }
  return hit;
}

}  // namespace cohort::render
