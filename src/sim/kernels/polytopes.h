/// Two polytopes over lanes: the axis along which they overlap least, or are farthest apart, is a normal of a face of
/// one of them or stands across an edge of each (Gottschalk 1996 for boxes; Ericson 2005, section 5.2.1). For shapes of
/// few faces and edges this takes less time than a search, and all environments of a block do the same. Likewise for a
/// sphere whose centre is inside a polytope, where the normals of the faces are all there is.
#pragma once
#include "sim/kernels/collide.h"

namespace cohort::sim {

/// The axis is known so well, in terms of the bounding spheres' radii: what the lanes' rounding can leave undecided.
inline constexpr float kAxisRounding = 1e-6f;

template <class V>
struct LeastOverlap {
  V apart;  ///< m, along the axis; negative: overlap
  V face;   ///< a face of the first shape, or of the second, counted after the first's; -1: it stands across two edges
  V axis[3];  ///< unit, from the first shape to the second
};

/// How far a polytope reaches along a direction of its own frame, both ways.
template <class L>
COHORT_LANE void span(const ModelView& m, const GeomRecord& g, const typename L::V* d, typename L::V& lowest,
                      typename L::V& highest) {
  using V = typename L::V;
  if (g.shape == kSphere) {
    highest = V(g.size[0]);
    lowest = -highest;
    return;
  }
  if (g.shape == kBox) {
    highest = fma(abs(d[0]), V(g.size[0]), fma(abs(d[1]), V(g.size[1]), abs(d[2]) * V(g.size[2])));
    lowest = -highest;
    return;
  }
  const MeshRecord& mesh = m.mesh[g.data];
  const float* block = m.mesh_vertex + mesh.first_vertex;
  // Two at a time: one would wait for itself. A block is filled up with its first vertex.
  V low[2] = {V(3e38f), V(3e38f)}, high[2] = {V(-3e38f), V(-3e38f)};
  for (int first = 0; first < mesh.vertex_count; first += kVertexBlock, block += 3 * kVertexBlock) {
    const int count = mesh.vertex_count - first < kVertexBlock ? mesh.vertex_count - first : kVertexBlock;
    for (int i = 0; i < count; i += 2) {
      for (int k = 0; k < 2; ++k) {
        const float* v = block + i + k;
        const V height = fma(d[0], V(v[0]), fma(d[1], V(v[kVertexBlock]), d[2] * V(v[2 * kVertexBlock])));
        low[k] = min(low[k], height);
        high[k] = max(high[k], height);
      }
    }
  }
  lowest = min(low[0], low[1]);
  highest = max(high[0], high[1]);
}

/// Edge directions of a polytope.
struct EdgeDirections {
  const float* of_mesh;
  int count;
  COHORT_LANE EdgeDirections(const ModelView& m, const GeomRecord& g)
      : of_mesh(nullptr), count(g.shape == kBox ? 3 : 0) {
    if (g.shape != kMesh) return;
    const MeshRecord& mesh = m.mesh[g.data];
    of_mesh = m.mesh_direction + mesh.first_direction;
    count = mesh.direction_count;
  }
  COHORT_LANE float component(int k, int i) const { return of_mesh ? of_mesh[3 * k + i] : k == i ? 1.0f : 0.0f; }
};

COHORT_LANE int face_count_of(const ModelView& m, const GeomRecord& g) {
  return g.shape == kBox ? 6 : g.shape == kMesh ? m.mesh[g.data].face_count : 0;
}

/// The faces of one shape, g, against another that lies at `to` and is turned by R against it. better(apart, face,
/// normal in g's frame).
template <class L, class Better>
COHORT_LANE void along_faces(const ModelView& m, const GeomRecord& g, const GeomRecord& other, const typename L::V* R,
                             const typename L::V* to, Better better) {
  using V = typename L::V;
  V lowest, highest;
  if (g.shape == kBox) {
    for (int k = 0; k < 3; ++k) {
      span<L>(m, other, R + 3 * k, lowest, highest);
      const float n[3] = {k == 0 ? 1.0f : 0.0f, k == 1 ? 1.0f : 0.0f, k == 2 ? 1.0f : 0.0f};
      const float opposite[3] = {-n[0], -n[1], -n[2]};
      better(to[k] + lowest - V(g.size[k]), 2 * k, n);
      better(-(to[k] + highest) - V(g.size[k]), 2 * k + 1, opposite);
    }
    return;
  }
  if (g.shape != kMesh) return;
  const MeshRecord& mesh = m.mesh[g.data];
  for (int f = 0; f < mesh.face_count; ++f) {
    const FaceRecord& face = m.mesh_face[mesh.first_face + f];
    V d[3];
    rotate_back(d, R, face.normal);
    span<L>(m, other, d, lowest, highest);
    const V at = fma(to[0], V(face.normal[0]), fma(to[1], V(face.normal[1]), to[2] * V(face.normal[2])));
    better(at + lowest - V(face.offset), f, face.normal);
  }
}

/// near: lanes that need an answer.
template <class L>
COHORT_KERNEL void least_overlap(LeastOverlap<typename L::V>& out, const ModelView& m, const PairRecord& p,
                                 const PairPose<typename L::V>& pose, typename L::M near) {
  using V = typename L::V;
  const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
  // The second shape in the first's frame, and the other way round.
  V d[3], to[3], back[3], rot1[9], R[9], turned[9], axis[3];
  // A sphere has no axes.
  for (int i = 0; i < 9; ++i) rot1[i] = g1.shape == kSphere ? V(i % 4 == 0 ? 1.0f : 0.0f) : pose.rot1[i];
  for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i], axis[i] = V(0.0f);
  rotate_back(to, rot1, d);
  for (int i = 0; i < 3; ++i) d[i] = -d[i];
  rotate_back(back, pose.rot2, d);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      turned[3 * j + i] = R[3 * i + j] =
          fma(rot1[i], pose.rot2[j], fma(rot1[3 + i], pose.rot2[3 + j], rot1[6 + i] * pose.rot2[6 + j]));
    }
  }
  V most(-1e9f), which(0.0f);
  along_faces<L>(m, g1, g2, R, to, [&](V apart, int face, const float* n) {
    const auto better = apart > most;
    most = select(better, apart, most);
    which = select(better, V(static_cast<float>(face)), which);
    for (int i = 0; i < 3; ++i) axis[i] = select(better, V(n[i]), axis[i]);
  });
  const int faces1 = face_count_of(m, g1);
  along_faces<L>(m, g2, g1, turned, back, [&](V apart, int face, const float* n) {
    const auto better = apart > most;
    most = select(better, apart, most);
    which = select(better, V(static_cast<float>(faces1 + face)), which);
    V inwards[3];
    rotate(inwards, R, n);
    for (int i = 0; i < 3; ++i) axis[i] = select(better, -inwards[i], axis[i]);
  });
  // Two edges must show more than rounding, and an axis across nearly parallel ones is the normal of a face.
  const V enough(p.margin + p.gap + kAxisRounding * (g1.radius + g2.radius)),
      more(kAxisRounding * (g1.radius + g2.radius));
  const EdgeDirections edges1(m, g1), edges2(m, g2);
  for (int j = 0; j < edges2.count; ++j) {
    if (!any(near & (most <= enough))) break;
    const float along2[3] = {edges2.component(j, 0), edges2.component(j, 1), edges2.component(j, 2)};
    V e[3];
    rotate(e, R, along2);
    for (int i = 0; i < edges1.count; ++i) {
      const V along1[3] = {V(edges1.component(i, 0)), V(edges1.component(i, 1)), V(edges1.component(i, 2))};
      V u[3], of2[3], low1, high1, low2, high2;
      cross(u, along1, e);
      const V squared = dot3(u, u);
      const auto across = squared > V(1e-6f);
      rotate_back(of2, R, u);
      span<L>(m, g1, u, low1, high1);
      span<L>(m, g2, of2, low2, high2);
      const V at = dot3(u, to);
      const V above = (low2 + at) - high1, below = low1 - (high2 + at);
      const auto upwards = above > below;
      const V scale = V(1.0f) / sqrt(select(across, squared, V(1.0f)));
      const V apart = select(upwards, above, below) * scale;
      const auto better = across & (apart > most + more);
      most = select(better, apart, most);
      which = select(better, V(-1.0f), which);
      const V sign = select(upwards, scale, -scale);
      for (int k = 0; k < 3; ++k) axis[k] = select(better, u[k] * sign, axis[k]);
    }
  }
  out.apart = most;
  out.face = which;
  rotate(out.axis, rot1, axis);
}

}  // namespace cohort::sim
