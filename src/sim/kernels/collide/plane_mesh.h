/// A plane and a mesh over lanes: the vertices near the plane or, of many, those that spread.h chooses. (MuJoCo's
/// mjc_PlaneConvex keeps the lowest and the first few that it comes to away from it.)
#pragma once
#include "sim/kernels/collide/collide.h"
#include "sim/kernels/collide/convex/farthest.h"
#include "sim/kernels/collide/convex/spread.h"

namespace cohort::sim {

/// A plane as one environment's mesh sees it.
struct SeenPlane {
  float down[3];     ///< unit, into the plane
  float x[3], y[3];  ///< along it, over the mesh's bounding radius
  float reached;     ///< m, along `down`, from where on vertices are in reach
};

/// The vertices that make contacts, to list (kSpreadKept); returns how many. Looks at as many at once as there are
/// lanes, for one environment.
template <class L>
COHORT_KERNEL int vertices_on_plane(int* list, const float* blocks, int count, const SeenPlane& plane) {
  using V = typename L::V;
  V* const type = nullptr;
  alignas(64) float first[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) first[i] = static_cast<float>(i);
  const V lane = load(first, type), reached(plane.reached), end(static_cast<float>(count));
  // f(vertices from `at` on, how far they reach along `down`, those in reach)
  const auto each = [&](auto f) {
    const float* block = blocks;
    for (int at = 0; at < count; at += kVertexBlock, block += 3 * kVertexBlock) {
      for (int i = 0; i < kVertexBlock; i += L::kWidth) {
        const V px = load_anywhere(block + i, type);
        const V py = load_anywhere(block + kVertexBlock + i, type);
        const V pz = load_anywhere(block + 2 * kVertexBlock + i, type);
        const V along = fma(px, V(plane.down[0]), fma(py, V(plane.down[1]), pz * V(plane.down[2])));
        const V which = lane + V(static_cast<float>(at + i));
        const auto in_reach = (along >= reached) & (which < end);
        if (any(in_reach)) f(at + i, which, in_reach, along, px, py, pz);
      }
    }
  };
  int found = 0;
  each([&](int at, V, auto in_reach, V, V, V, V) {
    for (unsigned bits = lane_bits(in_reach); bits != 0; bits &= bits - 1, ++found) {
      if (found < kSpreadKept) list[found] = at + lowest_bit(bits);
    }
  });
  if (found <= kSpreadKept) return found;
  V score[kSpreadKept], best[kSpreadKept];
  for (int k = 0; k < kSpreadKept; ++k) score[k] = V(-1.0f), best[k] = V(0.0f);
  each([&](int, V which, auto in_reach, V along, V px, V py, V pz) {
    const V depth = along - reached;
    const V x = fma(px, V(plane.x[0]), fma(py, V(plane.x[1]), pz * V(plane.x[2])));
    const V y = fma(px, V(plane.y[0]), fma(py, V(plane.y[1]), pz * V(plane.y[2])));
    for (int k = 0; k < kSpreadKept; ++k) {
      const V s = select(in_reach, spread_score(k, depth, x, y), V(-1.0f));
      const auto better = s > score[k];
      score[k] = select(better, s, score[k]), best[k] = select(better, which, best[k]);
    }
  });
  found = 0;
  for (int k = 0; k < kSpreadKept; ++k) {
    // Of vertices that count alike, the first.
    alignas(64) float places[L::kWidth];
    store(places, best[k]);
    unsigned highest = lane_bits(score[k] == V(largest_lane(score[k])));
    float where = places[lowest_bit(highest)];
    for (highest &= highest - 1; highest != 0; highest &= highest - 1) {
      const float other = places[lowest_bit(highest)];
      where = other < where ? other : where;
    }
    const int vertex = static_cast<int>(where);
    bool known = false;
    for (int i = 0; i < found; ++i) known = known || list[i] == vertex;
    if (!known) list[found++] = vertex;
  }
  return found;
}

/// Contacts of the lanes in `near`; the others get none. Returns how many the fullest lane has.
template <class L>
COHORT_KERNEL int plane_mesh(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                             const PairPose<typename L::V>& pose, typename L::M near) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
  const GeomRecord& g = m.geom[p.geom2];
  const MeshRecord& mesh = m.mesh[g.data];
  const float reach = p.margin + p.gap;
  V normal[3], d[3], axis[3][3];
  for (int i = 0; i < 3; ++i) normal[i] = pose.rot1[3 * i + 2], d[i] = pose.pos2[i] - pose.pos1[i];
  const V height = dot3(normal, d), inverse(1.0f / g.radius);
  alignas(64) float seen[3][3][kLanes], reached[kLanes], counts[kLanes] = {}, vertex[kSpreadKept][3][kLanes] = {};
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 3; ++i) axis[k][i] = k == 2 ? -normal[i] : pose.rot1[3 * i + k] * inverse;
    rotate_back(axis[k], pose.rot2, axis[k]);
    for (int i = 0; i < 3; ++i) store(seen[k][i], axis[k][i]);
  }
  store(reached, height - V(reach));
  int most = 0;
  each_lane(near, [&](int lane) {
    SeenPlane plane;
    for (int i = 0; i < 3; ++i) {
      plane.x[i] = seen[0][i][lane], plane.y[i] = seen[1][i][lane], plane.down[i] = seen[2][i][lane];
    }
    plane.reached = reached[lane];
    int list[kSpreadKept];
    const int count = vertices_on_plane<L>(list, m.mesh_vertex + mesh.first_vertex, mesh.vertex_count, plane);
    for (int k = 0; k < count; ++k) {
      float at[3];
      mesh_vertex(at, m, mesh, list[k]);
      for (int i = 0; i < 3; ++i) vertex[k][i][lane] = at[i];
    }
    counts[lane] = static_cast<float>(count);
    most = count > most ? count : most;
  });
  V* const type = nullptr;
  const V count = load(counts, type);
  for (int k = 0; k < most; ++k) {
    V local[3], at[3];
    for (int i = 0; i < 3; ++i) local[i] = load(vertex[k][i], type);
    const V along = fma(local[0], axis[2][0], fma(local[1], axis[2][1], local[2] * axis[2][2]));
    const V dist = height - along;
    out[k].dist = select(V(static_cast<float>(k)) < count, dist, V(kFarApart));
    rotate(at, pose.rot2, local);
    for (int i = 0; i < 3; ++i) {
      out[k].pos[i] = fma(V(-0.5f) * dist, normal[i], at[i] + pose.pos2[i]);
      out[k].normal[i] = normal[i], out[k].hint[i] = V(0.0f);
    }
  }
  return most;
}

}  // namespace cohort::sim
