/// A plane and a mesh over lanes: the lowest corner of the mesh and up to two of its neighbours that are near the plane
/// as well.
#pragma once
#include "sim/kernels/collide/collide.h"
#include "sim/kernels/collide/convex/farthest.h"

namespace cohort::sim {

/// Further corners of a mesh on a plane are at least this share of its bounding radius away from the lowest one.
inline constexpr float kSpread = 0.3f;
inline constexpr int kPlaneContacts = 3;
/// A mesh of no more vertices is gone through for all lanes at once.
inline constexpr int kFewVertices = 32;

/// The first of the vertices that lie farthest in a direction of the mesh's frame.
template <class L>
COHORT_LANE typename L::V farthest_of_lanes(const ModelView& m, const MeshRecord& mesh, const typename L::V* d,
                                            typename L::M lanes) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
  if (mesh.vertex_count <= kFewVertices) {
    V best(-3e38f), which(0.0f);
    for (int v = 0; v < mesh.vertex_count; ++v) {
      float p[3];
      mesh_vertex(p, m, mesh, v);
      const V height = fma(V(p[0]), d[0], fma(V(p[1]), d[1], V(p[2]) * d[2]));
      const typename L::M higher = height > best;
      best = select(higher, height, best), which = select(higher, V(static_cast<float>(v)), which);
    }
    return which;
  }
  // All lanes look through a large mesh together, for one after the other.
  alignas(64) float along[3][kLanes], found[kLanes] = {};
  for (int i = 0; i < 3; ++i) store(along[i], d[i]);
  each_lane(lanes, [&](int lane) {
    found[lane] = static_cast<float>(farthest_vertex<L>(m.mesh_vertex + mesh.first_vertex, mesh.vertex_count,
                                                        along[0][lane], along[1][lane], along[2][lane]));
  });
  return load(found, static_cast<V*>(nullptr));
}

/// The contacts so far.
template <class L>
struct CornersOnPlane {
  using V = typename L::V;
  using M = typename L::M;
  ContactPoint<V>* out;
  const ModelView& m;
  const MeshRecord& mesh;
  const PairPose<V>& pose;
  float reach, spread;  ///< m
  V normal[3], count = V(0.0f);

  COHORT_LANE void add(int v, M lanes) {
    float p[3];
    mesh_vertex(p, m, mesh, v);
    V at[3], above[3], away[3];
    rotate(at, pose.rot2, p);
    for (int i = 0; i < 3; ++i) {
      at[i] += pose.pos2[i];
      above[i] = at[i] - pose.pos1[i], away[i] = at[i] - out[0].pos[i];
    }
    const V dist = dot3(normal, above);
    const M spreads = (count == V(0.0f)) | flip(dot3(away, away) < V(spread * spread));
    const M good = lanes & (dist <= V(reach)) & spreads;
    for (int k = 0; k < kPlaneContacts; ++k) {
      const M here = good & (count == V(static_cast<float>(k)));
      out[k].dist = select(here, dist, out[k].dist);
      for (int i = 0; i < 3; ++i) {
        out[k].pos[i] = select(here, fma(V(-0.5f) * dist, normal[i], at[i]), out[k].pos[i]);
      }
    }
    count = select(good, count + V(1.0f), count);
  }
  /// Lanes that have one and may have more.
  COHORT_LANE M open(M lanes) const {
    return lanes & (count > V(0.0f)) & (count < V(static_cast<float>(kPlaneContacts)));
  }
};

/// Contacts of the lanes in `near`; the others get none. Returns how many the fullest lane has.
template <class L>
COHORT_KERNEL int plane_mesh(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                             const PairPose<typename L::V>& pose, typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  const GeomRecord& g = m.geom[p.geom2];
  const MeshRecord& mesh = m.mesh[g.data];
  CornersOnPlane<L> corners{out, m, mesh, pose, p.margin + p.gap, kSpread * g.radius, {}};
  V down[3];
  for (int i = 0; i < 3; ++i) corners.normal[i] = pose.rot1[3 * i + 2], down[i] = -corners.normal[i];
  rotate_back(down, pose.rot2, down);
  for (int k = 0; k < kPlaneContacts; ++k) {
    out[k].dist = V(kFarApart);
    for (int i = 0; i < 3; ++i) out[k].pos[i] = out[k].hint[i] = V(0.0f), out[k].normal[i] = corners.normal[i];
  }
  const V lowest = farthest_of_lanes<L>(m, mesh, down, near);
  alignas(64) float which[L::kWidth];
  store(which, lowest);
  for (unsigned left = lane_bits(near); left != 0;) {
    const int v = static_cast<int>(which[lowest_bit(left)]);
    const M lanes = near & (lowest == V(static_cast<float>(v)));
    left &= ~lane_bits(lanes);
    corners.add(v, lanes);
    const auto more = [&](int other) {
      const M still = corners.open(lanes);
      if (any(still)) corners.add(other, still);
      return any(still);
    };
    if (mesh.first_edge >= 0) {
      const int* const edges = m.mesh_edge + mesh.first_edge;
      for (const int* e = edges + edges[v]; *e >= 0 && more(*e);) ++e;
    } else {
      for (int other = 0; other < mesh.vertex_count && (other == v || more(other));) ++other;
    }
  }
  int most = 0;
  while (most < kPlaneContacts && any(near & (corners.count > V(static_cast<float>(most))))) ++most;
  return most;
}

}  // namespace cohort::sim
