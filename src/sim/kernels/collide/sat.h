/// Two polytopes over lanes: the axis along which they overlap least, or are farthest apart, is a normal of a face of
/// one of them or stands across an edge of each (Gottschalk 1996 for boxes; Ericson 2005, section 5.2.1). For shapes of
/// few faces and edges this takes less time than a search, and all environments of a block do the same. Likewise for a
/// sphere whose centre is inside a polytope, where the normals of the faces are all there is.
#pragma once
#include "sim/kernels/collide/collide.h"

namespace cohort::sim {

/// The axis is known so well, in terms of the bounding spheres' radii: what the lanes' rounding can leave undecided.
inline constexpr float kAxisRounding = 1e-6f;
/// Edges with a smaller sine between them count as parallel.
inline constexpr float kLeastSine = 1e-3f;

template <class V>
struct LeastOverlap {
  V apart;  ///< m, along the axis; negative: overlap
  V face;   ///< a face of the first shape, or of the second, counted after the first's; -1: it stands across two edges
  V axis[3];       ///< unit, from the first shape to the second, in the first's frame
  V edge1, edge2;  ///< where it stands across two edges: which side of a mesh; which axis of a box
};

/// The second shape in the first's frame, and the other way round.
template <class V>
struct RelativePose {
  V rot1[9];             ///< the first's; a sphere's is 1
  V R[9], to[3];         ///< of the second in the first's
  V turned[9], back[3];  ///< of the first in the second's
  COHORT_LANE RelativePose(const PairPose<V>& pose, bool sphere) {
    V d[3];
    for (int i = 0; i < 9; ++i) rot1[i] = sphere ? V(i % 4 == 0 ? 1.0f : 0.0f) : pose.rot1[i];
    for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i];
    rotate_back(to, rot1, d);
    for (int i = 0; i < 3; ++i) d[i] = -d[i];
    rotate_back(back, pose.rot2, d);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        turned[3 * j + i] = R[3 * i + j] =
            fma(rot1[i], pose.rot2[j], fma(rot1[3 + i], pose.rot2[3 + j], rot1[6 + i] * pose.rot2[6 + j]));
      }
    }
  }
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

COHORT_LANE int face_count_of(const ModelView& m, const GeomRecord& g) {
  return g.shape == kBox ? 6 : g.shape == kMesh ? m.mesh[g.data].face_count : 0;
}

/// The faces of one shape, g, against another that lies at `to` and is turned by R against it. better(apart, face,
/// normal in the other's frame).
template <class L, class Better>
COHORT_LANE void along_faces(const ModelView& m, const GeomRecord& g, const GeomRecord& other, const typename L::V* R,
                             const typename L::V* to, Better better) {
  using V = typename L::V;
  V lowest, highest;
  if (g.shape == kBox) {
    for (int k = 0; k < 3; ++k) {
      span<L>(m, other, R + 3 * k, lowest, highest);
      const V turned[3] = {R[3 * k], R[3 * k + 1], R[3 * k + 2]};
      const V back[3] = {-turned[0], -turned[1], -turned[2]};
      better(to[k] + lowest - V(g.size[k]), 2 * k, turned);
      better(-(to[k] + highest) - V(g.size[k]), 2 * k + 1, back);
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
    better(at + lowest - V(face.offset), f, d);
  }
}

/// Unit, outwards, in the shape's frame.
COHORT_LANE void face_normal(float* n, const ModelView& m, const GeomRecord& g, int face) {
  if (g.shape == kMesh) {
    for (int i = 0; i < 3; ++i) n[i] = m.mesh_face[m.mesh[g.data].first_face + face].normal[i];
    return;
  }
  for (int i = 0; i < 3; ++i) n[i] = i != face / 2 ? 0.0f : face % 2 ? -1.0f : 1.0f;
}

/// Normals of a mesh's faces in another shape's frame, and how far the shapes are apart along them. A single lane,
/// which would have to go far for them, turns each where it is needed.
template <class L>
struct TurnedNormals {
  using V = typename L::V;
  static constexpr bool kKept = L::kWidth > 1;
  V at[kKept ? kMostLaneFaces : 1][3], apart[kKept ? kMostLaneFaces : 1];

  COHORT_LANE void keep([[maybe_unused]] int face, [[maybe_unused]] const V* normal, [[maybe_unused]] V apart_along) {
    if constexpr (kKept) {
      for (int i = 0; i < 3; ++i) at[face][i] = normal[i];
      apart[face] = apart_along;
    }
  }
  COHORT_LANE void get(V* normal, const ModelView& m, const MeshRecord& mesh, const V* R, int face) const {
    if constexpr (kKept) {
      for (int i = 0; i < 3; ++i) normal[i] = at[face][i];
    } else {
      rotate(normal, R, m.mesh_face[mesh.first_face + face].normal);
    }
  }
};

/// Axes across an edge of each: those whose arcs, between the normals of the faces beside them, cross on the sphere of
/// directions (Gregorius 2013), because only they are faces of the Minkowski difference. The second shape is a mesh.
template <class L>
struct EdgeSearch {
  using V = typename L::V;
  using M = typename L::M;
  const ModelView& m;
  const GeomRecord &g1, &g2;
  const RelativePose<V>& relative;
  const TurnedNormals<L>& normals;  ///< of the second shape in the first's frame
  V enough, more;                   ///< m: who is farther apart needs no axis; what an axis must be better by
  LeastOverlap<V>& best;

  /// A side of the second shape in the first's frame.
  struct Side {
    V along[3], begin[3];  ///< m
    V right[3], left[3];   ///< inward normals of its faces
    float squared;         ///< m^2, of its length
  };
  COHORT_LANE void place(Side& side, const MeshRecord& mesh, const SideRecord& record) const {
    float begin[3];
    mesh_vertex(begin, m, mesh, record.begin);
    const float* const e = record.along;
    side.squared = e[0] * e[0] + e[1] * e[1] + e[2] * e[2];
    rotate(side.along, relative.R, e);
    rotate(side.begin, relative.R, begin);
    for (int i = 0; i < 3; ++i) side.begin[i] += relative.to[i];
  }

  COHORT_LANE void all(M near) {
    const MeshRecord& mesh = m.mesh[g2.data];
    Side side;
    // No two points of the shapes are farther from each other.
    const V farthest = sqrt(dot3(relative.to, relative.to)) + V(1.0001f * (g1.radius + g2.radius));
    for (int j = 0; j < mesh.side_count; ++j) {
      const M left = near & (best.apart <= enough);
      if (!any(left)) return;
      const SideRecord& record = m.mesh_side[mesh.first_side + j];
      if constexpr (TurnedNormals<L>::kKept) {
        // Along an axis between the normals of the side's faces the shapes are farther apart than along either of these
        // by no more than what the ends of both unit vectors are apart, times that.
        const V beside = min(normals.apart[record.left], normals.apart[record.right]) + V(record.beyond);
        if (!any(left & (fma(V(record.turn), farthest, beside) > best.apart))) continue;
      }
      normals.get(side.right, m, mesh, relative.R, record.right);
      normals.get(side.left, m, mesh, relative.R, record.left);
      if (g1.shape == kBox) {
        // Most sides meet no edge of the box.
        const V zero(0.0f);
        if (!any(left & ((side.right[0] * side.left[0] < zero) | (side.right[1] * side.left[1] < zero) |
                         (side.right[2] * side.left[2] < zero)))) {
          continue;
        }
      }
      for (int i = 0; i < 3; ++i) side.right[i] = -side.right[i], side.left[i] = -side.left[i];
      place(side, mesh, record);
      if (g1.shape == kBox) {
        of_box(side, j, left);
      } else {
        of_mesh(side, j, left);
      }
    }
  }

 private:
  /// u: across edges i and j; sign: 1 where it leads from the first shape to the second, or -1; apart: how far they are
  /// apart along it, times its length.
  COHORT_LANE void look(const V* u, V squared, V sign, V apart, M crosses, int i, int j) {
    // Most are not better by far, which takes no root to see; nothing that is better is left out.
    const V zero(0.0f), one(1.0f), least = best.apart + more;
    const M maybe = (apart > zero) | ((least < zero) & (apart * apart < V(1.00001f) * (least * least) * squared));
    if (!any(crosses & maybe)) return;
    const V length = sqrt(select(crosses, squared, one));
    const M better = crosses & (apart > least * length);
    if (!any(better)) return;
    const V inverse = one / length, scale = sign * inverse;
    best.apart = select(better, apart * inverse, best.apart);
    best.face = select(better, V(-1.0f), best.face);
    best.edge1 = select(better, V(static_cast<float>(i)), best.edge1);
    best.edge2 = select(better, V(static_cast<float>(j)), best.edge2);
    for (int k = 0; k < 3; ++k) best.axis[k] = select(better, u[k] * scale, best.axis[k]);
  }

  /// A box's edges along one axis have arcs that close a circle: the corner farthest along the axis tells which it is.
  COHORT_LANE void of_box(const Side& side, int j, M near) {
    for (int i = 0; i < 3; ++i) {
      const int k = i == 2 ? 0 : i + 1, l = i == 0 ? 2 : i - 1;
      M crosses = near & (side.right[i] * side.left[i] < V(0.0f));
      if (!any(crosses)) continue;
      V u[3];
      u[i] = V(0.0f), u[k] = -side.along[l], u[l] = side.along[k];
      const V squared = fma(u[k], u[k], u[l] * u[l]);
      crosses = crosses & (squared > V(kLeastSine * kLeastSine * side.squared));
      const V sign = select(side.right[i] > V(0.0f), V(1.0f), V(-1.0f));
      const V reach = fma(abs(u[k]), V(g1.size[k]), abs(u[l]) * V(g1.size[l]));
      look(u, squared, sign, sign * fma(u[k], side.begin[k], u[l] * side.begin[l]) - reach, crosses, i, j);
    }
  }

  COHORT_LANE void of_mesh(const Side& side, int j, M near) {
    const V zero(0.0f);
    const MeshRecord& mesh = m.mesh[g1.data];
    const SideRecord* const sides = m.mesh_side + mesh.first_side;
    V along[kMostMeetingFaces];  // the side's part along the normals of the first shape's faces
    for (int f = 0; f < mesh.face_count; ++f) {
      const float* const n = m.mesh_face[mesh.first_face + f].normal;
      along[f] = fma(side.along[0], V(n[0]), fma(side.along[1], V(n[1]), side.along[2] * V(n[2])));
    }
    const auto crossing = [&](const SideRecord& s, V& right) {
      const V e[3] = {V(s.along[0]), V(s.along[1]), V(s.along[2])};
      const V left = dot3(side.left, e);
      right = dot3(side.right, e);
      const M turns = right * left < zero, passes = along[s.left] * along[s.right] < zero;
      return near & turns & passes & (right * along[s.left] > zero);
    };
    // First which, then their axes: a branch for each would mostly be guessed wrong.
    int met[kMostMeetingSides], count = 0;
    V right;
    for (int i = 0; i < mesh.side_count; ++i) {
      met[count] = i;
      count += any(crossing(sides[i], right)) ? 1 : 0;
    }
    for (int k = 0; k < count; ++k) {
      const SideRecord& s = sides[met[k]];
      M crosses = crossing(s, right);
      const V e[3] = {V(s.along[0]), V(s.along[1]), V(s.along[2])};
      V u[3];
      cross(u, e, side.along);
      const V squared = dot3(u, u);
      const float own = s.along[0] * s.along[0] + s.along[1] * s.along[1] + s.along[2] * s.along[2];
      crosses = crosses & (squared > V(kLeastSine * kLeastSine * side.squared * own));
      float begin[3];
      mesh_vertex(begin, m, mesh, s.begin);
      const V between[3] = {side.begin[0] - V(begin[0]), side.begin[1] - V(begin[1]), side.begin[2] - V(begin[2])};
      const V sign = select(right > zero, V(1.0f), V(-1.0f));
      look(u, squared, sign, sign * dot3(u, between), crosses, met[k], j);
    }
  }
};

/// In its own frame, of each lane's face of a polytope.
template <class L>
COHORT_LANE void normals_of_faces(typename L::V* n, const ModelView& m, const GeomRecord& g, typename L::V face,
                                  typename L::M lanes) {
  alignas(64) float which[L::kWidth];
  store(which, face);
  each_lane(lanes, [&](int lane) {
    float own[3];
    face_normal(own, m, g, static_cast<int>(which[lane]));
    for (int i = 0; i < 3; ++i) set_lane(n[i], lane, own[i]);
  });
}

/// near: lanes that need an answer.
template <class L>
COHORT_KERNEL void least_overlap(LeastOverlap<typename L::V>& out, const ModelView& m, const PairRecord& p,
                                 const RelativePose<typename L::V>& relative, typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
  V most(-1e9f), of_face(0.0f);  // of their own, for the registers' sake
  const auto look = [&](V apart, int face) {
    const M better = apart > most;
    most = select(better, apart, most);
    of_face = select(better, V(static_cast<float>(face)), of_face);
  };
  const int faces1 = face_count_of(m, g1);
  along_faces<L>(m, g1, g2, relative.R, relative.to, [&](V apart, int face, const V*) { look(apart, face); });
  TurnedNormals<L> normals;
  along_faces<L>(m, g2, g1, relative.turned, relative.back, [&](V apart, int face, const V* turned) {
    look(apart, faces1 + face);
    if (face < kMostLaneFaces) normals.keep(face, turned, apart);
  });
  out.apart = most, out.face = of_face, out.edge1 = out.edge2 = V(0.0f);
  // The axes of those that it has come to.
  const M first = near & (out.face < V(static_cast<float>(faces1))), second = near & flip(first);
  V own[3] = {V(0.0f), V(0.0f), V(0.0f)}, other[3] = {own[0], own[1], own[2]};
  normals_of_faces<L>(own, m, g1, out.face, first);
  normals_of_faces<L>(other, m, g2, out.face - V(static_cast<float>(faces1)), second);
  rotate(other, relative.R, other);
  for (int i = 0; i < 3; ++i) out.axis[i] = select(second, -other[i], own[i]);
  if (g1.shape == kSphere) return;
  // Two edges must show more than rounding, and an axis across nearly parallel ones is the normal of a face.
  const float rounding = kAxisRounding * (g1.radius + g2.radius);
  EdgeSearch<L>{m, g1, g2, relative, normals, V(p.margin + p.gap + rounding), V(rounding), out}.all(near);
}

}  // namespace cohort::sim
