/// Which features of two polytopes lie on each other where they overlap least, over lanes: two faces, an edge and a
/// face, or neither. The choices are those of faces.h.
#pragma once
#include "sim/kernels/collide/sat.h"

namespace cohort::sim {

inline constexpr float kLaneFacing = static_cast<float>(kFacing), kLaneTowards = static_cast<float>(kTowards),
                       kLaneAlike = static_cast<float>(kFacesAlike);
inline constexpr float kAlongSquared = static_cast<float>(kAlong * kAlong);

// ---- boxes and meshes alike, for one lane

/// A vertex in the shape's frame.
COHORT_LANE void corner_of(float* at, const ModelView& m, const GeomRecord& g, int v) {
  if (g.shape == kMesh) return mesh_vertex(at, m, m.mesh[g.data], v);
  for (int i = 0; i < 3; ++i) at[i] = v >> i & 1 ? g.size[i] : -g.size[i];
}
COHORT_LANE int corner_count(const ModelView& m, const GeomRecord& g, int face) {
  return g.shape == kBox ? 4 : m.mesh_face[m.mesh[g.data].first_face + face].corner_count;
}
/// Corner k of a face, counterclockwise.
COHORT_LANE int face_corner(const ModelView& m, const GeomRecord& g, int face, int k) {
  return g.shape == kBox ? box_corner(face, k)
                         : m.mesh_edge[m.mesh_face[m.mesh[g.data].first_face + face].first_corner + k];
}

// ---- a face, and the other shape's vertex on it

/// What a polytope has on a plane that it stands on: its lowest vertex along the plane's normal, and what of it lies
/// along the plane there.
template <class L>
struct Standing {
  using V = typename L::V;
  V vertex, at[3];  ///< m, in the shape's frame
  V face;           ///< that looks at the plane; -1: none
  V end;            ///< other end of the first edge along the plane; -1: none
};

template <class L>
COHORT_KERNEL void box_standing(Standing<L>& s, const GeomRecord& g, const typename L::V* normal) {
  using V = typename L::V;
  const V zero(0.0f);
  s.vertex = zero, s.face = s.end = V(-1.0f);
  for (int i = 0; i < 3; ++i) {
    const typename L::M above = normal[i] < zero;
    s.at[i] = select(above, V(g.size[i]), V(-g.size[i]));
    s.vertex = s.vertex + select(above, V(static_cast<float>(1 << i)), zero);
    s.face = select(abs(normal[i]) > V(kLaneFacing), select(above, V(2.0f * i), V(2.0f * i + 1)), s.face);
  }
  for (int i = 2; i >= 0; --i) {
    const V bit(static_cast<float>(1 << i));
    const typename L::M along = normal[i] * normal[i] < V(kAlongSquared);
    s.end = select(along, s.vertex + select(normal[i] < zero, -bit, bit), s.end);
  }
}

template <class L>
COHORT_KERNEL void mesh_standing(Standing<L>& s, const ModelView& m, const GeomRecord& g, const typename L::V* normal,
                                 typename L::M lanes) {
  using V = typename L::V;
  using M = typename L::M;
  const MeshRecord& mesh = m.mesh[g.data];
  V height[kMostLaneVertices], lowest(3e38f);
  for (int v = 0; v < mesh.vertex_count; ++v) {
    float at[3];
    mesh_vertex(at, m, mesh, v);
    height[v] = fma(normal[0], V(at[0]), fma(normal[1], V(at[1]), normal[2] * V(at[2])));
    const M lower = height[v] < lowest;
    lowest = select(lower, height[v], lowest);
    s.vertex = select(lower, V(static_cast<float>(v)), s.vertex);
    for (int i = 0; i < 3; ++i) s.at[i] = select(lower, V(at[i]), s.at[i]);
  }
  s.face = s.end = V(-1.0f);
  // Of the faces at the vertex that look at the plane, the one that looks at it most.
  V most(kLaneFacing);
  for (int f = 0; f < mesh.face_count; ++f) {
    const FaceRecord& face = m.mesh_face[mesh.first_face + f];
    const float* const n = face.normal;
    const V facing = -fma(normal[0], V(n[0]), fma(normal[1], V(n[1]), normal[2] * V(n[2])));
    const M looks = lanes & (facing > most);
    if (!any(looks)) continue;
    M at_vertex = looks & flip(looks);
    for (int k = 0; k < face.corner_count; ++k) {
      at_vertex = at_vertex | (s.vertex == V(static_cast<float>(m.mesh_edge[face.first_corner + k])));
    }
    const M better = looks & at_vertex;
    s.face = select(better, V(static_cast<float>(f)), s.face);
    most = select(better, facing + V(kLaneAlike), most);
  }
  if (!any(lanes & (s.face < V(0.0f)))) return;
  // Of the edges at the vertex, that of the first face which has it as the edge towards the vertex.
  V first(3e38f);
  for (int i = 0; i < mesh.side_count; ++i) {
    const SideRecord& side = m.mesh_side[mesh.first_side + i];
    const float* const e = side.along;
    const V rise = height[side.end] - height[side.begin];
    const M ends = s.vertex == V(static_cast<float>(side.end)), begins = s.vertex == V(static_cast<float>(side.begin));
    const V face = select(ends, V(static_cast<float>(side.left)), V(static_cast<float>(side.right)));
    const M along =
        (ends | begins) & (face < first) & (rise * rise < V(kAlongSquared * (e[0] * e[0] + e[1] * e[1] + e[2] * e[2])));
    first = select(along, face, first);
    const V other = select(ends, V(static_cast<float>(side.begin)), V(static_cast<float>(side.end)));
    s.end = select(along, other, s.end);
  }
}

/// normal: of the plane, in the shape's frame.
template <class L>
COHORT_LANE void standing(Standing<L>& s, const ModelView& m, const GeomRecord& g, const typename L::V* normal,
                          typename L::M lanes) {
  if (g.shape == kBox) {
    box_standing(s, g, normal);
  } else {
    mesh_standing(s, m, g, normal, lanes);
  }
}

// ---- what meets

template <class L>
struct MeetingFeatures {
  using V = typename L::V;
  using M = typename L::M;
  M faces;      ///< two faces lie on each other
  M edge;       ///< an edge of one shape lies on a face of the other
  M of_second;  ///< that face is the second shape's
  V face1, face2;
  V begin, end;  ///< vertices of the edge
  V deepest[3];  ///< m, midway between the shapes where they are deepest; in the first's frame
};

/// A face of one shape and a vertex of the other. lanes: whose face is the first's, or the second's.
template <class L>
COHORT_LANE void vertex_on_face(MeetingFeatures<L>& out, const ModelView& m, const PairRecord& p,
                                const RelativePose<typename L::V>& relative, const LeastOverlap<typename L::V>& least,
                                bool second, typename L::M lanes) {
  using V = typename L::V;
  using M = typename L::M;
  const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
  V normal[3], at[3];
  Standing<L> s;
  if (second) {
    for (int i = 0; i < 3; ++i) normal[i] = -least.axis[i];
    standing(s, m, g1, normal, lanes);
    for (int i = 0; i < 3; ++i) at[i] = s.at[i];
  } else {
    rotate_back(normal, relative.R, least.axis);
    standing(s, m, g2, normal, lanes);
    rotate(at, relative.R, s.at);
    for (int i = 0; i < 3; ++i) at[i] += relative.to[i];
  }
  const V zero(0.0f), middle = (second ? V(0.5f) : V(-0.5f)) * least.apart;
  const M faces = lanes & (s.face >= zero), edge = lanes & (s.face < zero) & (s.end >= zero);
  const V own = least.face - V(second ? static_cast<float>(face_count_of(m, g1)) : 0.0f);
  out.face1 = select(lanes, second ? s.face : own, out.face1);
  out.face2 = select(lanes, second ? own : s.face, out.face2);
  out.faces = out.faces | faces;
  out.edge = out.edge | edge;
  out.of_second = second ? out.of_second | edge : out.of_second;
  out.begin = select(edge, s.vertex, out.begin), out.end = select(edge, s.end, out.end);
  for (int i = 0; i < 3; ++i) out.deepest[i] = select(lanes, fma(middle, least.axis[i], at[i]), out.deepest[i]);
}

/// An edge and the two faces beside it, lane by lane.
template <class L>
struct LaneEdge {
  using V = typename L::V;
  V begin[3], along[3];     ///< m
  V normal[2][3], face[2];  ///< rising
  V ends[2];

  /// axis: outwards, in the shape's frame: which of a box's four edges.
  COHORT_KERNEL void gather(const ModelView& m, const GeomRecord& g, V edge, const V* axis, typename L::M lanes) {
    constexpr int kLanes = L::kWidth;
    alignas(64) float which[kLanes], outwards[3][kLanes], found[16][kLanes] = {};
    store(which, edge);
    for (int i = 0; i < 3; ++i) store(outwards[i], axis[i]);
    each_lane(lanes, [&](int lane) {
      const int e = static_cast<int>(which[lane]);
      int end[2], f[2];
      if (g.shape == kBox) {
        int bits = 0, k = 0;
        for (int i = 0; i < 3; ++i) {
          const bool positive = outwards[i][lane] > 0;
          if (i != e && positive) bits |= 1 << i;
          if (i != e) f[k++] = 2 * i + (positive ? 0 : 1);
        }
        end[0] = bits, end[1] = bits | 1 << e;
      } else {
        const SideRecord& side = m.mesh_side[m.mesh[g.data].first_side + e];
        const bool rising = side.left < side.right;
        end[0] = side.begin, end[1] = side.end;
        f[0] = rising ? side.left : side.right, f[1] = rising ? side.right : side.left;
      }
      float at[2][3], n[3];
      for (int k = 0; k < 2; ++k) {
        corner_of(at[k], m, g, end[k]);
        face_normal(n, m, g, f[k]);
        for (int i = 0; i < 3; ++i) found[6 + 3 * k + i][lane] = n[i];
        found[12 + k][lane] = static_cast<float>(f[k]);
        found[14 + k][lane] = static_cast<float>(end[k]);
      }
      for (int i = 0; i < 3; ++i) found[i][lane] = at[0][i], found[3 + i][lane] = at[1][i] - at[0][i];
    });
    V* const type = nullptr;
    for (int i = 0; i < 3; ++i) {
      begin[i] = load(found[i], type), along[i] = load(found[3 + i], type);
      normal[0][i] = load(found[6 + i], type), normal[1][i] = load(found[9 + i], type);
    }
    for (int k = 0; k < 2; ++k) face[k] = load(found[12 + k], type), ends[k] = load(found[14 + k], type);
  }
};

/// The point midway between the nearest ones of two edges' lines, each kept on its edge.
template <class L>
COHORT_LANE void between_edges(typename L::V* middle, const LaneEdge<L>& e1, const LaneEdge<L>& e2) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f), half(0.5f);
  V between[3];
  for (int i = 0; i < 3; ++i) between[i] = e2.begin[i] - e1.begin[i];
  const V aa = dot3(e1.along, e1.along), ab = dot3(e1.along, e2.along), bb = dot3(e2.along, e2.along);
  const V da = dot3(e1.along, between), db = dot3(e2.along, between), det = fma(aa, bb, -(ab * ab));
  const typename L::M skew = det > zero;
  const V safe = select(skew, det, one);
  const V share1 = select(skew, clip(fma(da, bb, -(ab * db)) / safe, zero, one), zero);
  const V share2 = select(skew, clip(fma(ab, da, -(aa * db)) / safe, zero, one), zero);
  for (int i = 0; i < 3; ++i) {
    middle[i] = half * (fma(share1, e1.along[i], e1.begin[i]) + fma(share2, e2.along[i], e2.begin[i]));
  }
}

/// Two edges: maybe faces beside them lie on each other, or the first's edge on a face beside the second's.
template <class L>
COHORT_KERNEL void edge_on_edge(MeetingFeatures<L>& out, const ModelView& m, const PairRecord& p,
                                const RelativePose<typename L::V>& relative, const LeastOverlap<typename L::V>& least,
                                typename L::M lanes) {
  using V = typename L::V;
  using M = typename L::M;
  LaneEdge<L> e1, e2;
  V axis2[3];
  e1.gather(m, m.geom[p.geom1], least.edge1, least.axis, lanes);
  rotate_back(axis2, relative.R, least.axis);
  for (V& x : axis2) x = -x;
  e2.gather(m, m.geom[p.geom2], least.edge2, axis2, lanes);
  // Into the first's frame.
  rotate(e2.begin, relative.R, e2.begin), rotate(e2.along, relative.R, e2.along);
  for (int k = 0; k < 2; ++k) rotate(e2.normal[k], relative.R, e2.normal[k]);
  for (int i = 0; i < 3; ++i) e2.begin[i] += relative.to[i];
  V middle[3];
  between_edges(middle, e1, e2);
  for (int i = 0; i < 3; ++i) out.deepest[i] = select(lanes, middle[i], out.deepest[i]);
  M faces = lanes & flip(lanes), edge = faces;
  // The first face that fits the edge counts: the last is looked at first.
  const V longest = V(kAlongSquared) * dot3(e1.along, e1.along);
  for (int k = 1; k >= 0; --k) {
    const V slope = dot3(e1.along, e2.normal[k]);
    const M on = lanes & (dot3(e2.normal[k], least.axis) <= V(-kLaneTowards)) & (slope * slope < longest);
    edge = edge | on;
    out.face2 = select(on, e2.face[k], out.face2);
  }
  V most(kLaneFacing);
  for (int i = 0; i < 2; ++i) {
    const M towards = lanes & (dot3(e1.normal[i], least.axis) >= V(kLaneTowards));
    for (int k = 0; k < 2; ++k) {
      const V facing = -dot3(e1.normal[i], e2.normal[k]);
      const M on = towards & (facing > most);
      most = select(on, facing + V(kLaneAlike), most);
      faces = faces | on;
      out.face1 = select(on, e1.face[i], out.face1), out.face2 = select(on, e2.face[k], out.face2);
    }
  }
  edge = edge & flip(faces);
  out.faces = out.faces | faces;
  out.edge = out.edge | edge;
  out.of_second = out.of_second | edge;
  out.begin = select(edge, e1.ends[0], out.begin), out.end = select(edge, e1.ends[1], out.end);
}

/// The features of `lanes`, which overlap.
template <class L>
COHORT_LANE void meeting_features(MeetingFeatures<L>& out, const ModelView& m, const PairRecord& p,
                                  const RelativePose<typename L::V>& relative, const LeastOverlap<typename L::V>& least,
                                  typename L::M lanes) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f);
  const V faces1(static_cast<float>(face_count_of(m, m.geom[p.geom1])));
  const M edges = lanes & (least.face < zero);
  const M first = lanes & (least.face >= zero) & (least.face < faces1), second = lanes & (least.face >= faces1);
  out.faces = out.edge = out.of_second = zero > zero;
  out.face1 = out.face2 = out.begin = out.end = zero;
  for (V& x : out.deepest) x = zero;
  if (any(first)) vertex_on_face<L>(out, m, p, relative, least, false, first);
  if (any(second)) vertex_on_face<L>(out, m, p, relative, least, true, second);
  if (any(edges)) edge_on_edge<L>(out, m, p, relative, least, edges);
}

}  // namespace cohort::sim
