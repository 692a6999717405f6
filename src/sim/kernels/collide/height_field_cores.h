/// The shapes that meet a height field's prisms (height_field_touch.h), each without the radius around it, about its
/// centre, in the field's frame. A core tells how far down it reaches along a direction and with which point, whether a
/// point is inside, and its faces and straight edges; a round one how it reaches along an axis that is turned (Arc).
#pragma once
#include "sim/kernels/collide/convex/farthest.h"
#include "sim/kernels/collide/polygon_clip.h"
#include "sim/kernels/lane/spatial.h"

namespace cohort::sim {

template <class L>
struct BoxCore {
  using V = typename L::V;
  static constexpr bool kRound = false, kSegment = false, kStands = true, kLies = false;
  V axis[3][3];
  const float* size;

  COHORT_LANE BoxCore(const ModelView&, const GeomRecord& g, const V* R) : size(g.size) {
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < 3; ++i) axis[k][i] = R[3 * i + k];
    }
  }
  COHORT_LANE V lowest(const V* d) const {
    V sum(0.0f);
    for (int k = 0; k < 3; ++k) sum = fma(abs(dot3(axis[k], d)), V(-size[k]), sum);
    return sum;
  }
  COHORT_LANE void span(V& low, V& high, const V* d) const { low = lowest(d), high = -low; }
  COHORT_LANE void lowest_point(V* p, const V* d) const {
    for (int i = 0; i < 3; ++i) p[i] = V(0.0f);
    for (int k = 0; k < 3; ++k) {
      const V side = select(dot3(axis[k], d) > V(0.0f), V(-size[k]), V(size[k]));
      for (int i = 0; i < 3; ++i) p[i] = fma(side, axis[k][i], p[i]);
    }
  }
  /// To the middle of the points that are lowest along d, where p is one of them.
  COHORT_LANE void middle(V* p, const V* d, V level) const {
    for (int k = 0; k < 3; ++k) {
      const V off = select(abs(dot3(axis[k], d)) * V(size[k]) <= level, -dot3(axis[k], p), V(0.0f));
      for (int i = 0; i < 3; ++i) p[i] = fma(off, axis[k][i], p[i]);
    }
  }
  /// To a point inside, the nearest or not far from it.
  COHORT_LANE void pull_in(V* p) const {
    V sum[3] = {V(0.0f), V(0.0f), V(0.0f)};
    for (int k = 0; k < 3; ++k) {
      const V at = clip(dot3(axis[k], p), V(-size[k]), V(size[k]));
      for (int i = 0; i < 3; ++i) sum[i] = fma(at, axis[k][i], sum[i]);
    }
    for (int i = 0; i < 3; ++i) p[i] = sum[i];
  }
  COHORT_LANE typename L::M inside(const V* p, V tolerance) const {
    typename L::M yes = abs(dot3(axis[0], p)) <= V(size[0]) + tolerance;
    for (int k = 1; k < 3; ++k) yes = yes & (abs(dot3(axis[k], p)) <= V(size[k]) + tolerance);
    return yes;
  }
  template <class F>
  COHORT_LANE void faces(F f) const {
    for (int k = 0; k < 3; ++k) {
      const V back[3] = {-axis[k][0], -axis[k][1], -axis[k][2]};
      f(axis[k], size[k]);
      f(back, size[k]);
    }
  }
  template <class F>
  COHORT_LANE void edges(F f) const {
    for (int k = 0; k < 3; ++k) f(axis[k]);
  }
  /// up: unit, across the ground; its lowest face.
  COHORT_LANE void footprint(LanePolygon<L>& polygon, const V* up, typename L::M) const {
    V along[3];
    for (int k = 0; k < 3; ++k) along[k] = dot3(axis[k], up);
    const auto is1 = abs(along[1]) > abs(along[0]);
    const auto is2 = abs(along[2]) > max(abs(along[0]), abs(along[1]));
    const auto chosen = [&](V of0, V of1, V of2) { return select(is2, of2, select(is1, of1, of0)); };
    const V side = select(chosen(along[0], along[1], along[2]) > V(0.0f), V(-1.0f), V(1.0f));
    V middle[3], u[3], v[3];
    for (int i = 0; i < 3; ++i) {
      const V x = axis[0][i] * V(size[0]), y = axis[1][i] * V(size[1]), z = axis[2][i] * V(size[2]);
      middle[i] = side * chosen(x, y, z), u[i] = chosen(y, z, x), v[i] = chosen(z, x, y);
    }
    const auto yes = side == side;
    for (int k = 0; k < 4; ++k) {
      V p[3];
      for (int i = 0; i < 3; ++i) {
        const V across = k == 1 || k == 2 ? -u[i] : u[i];
        p[i] = k < 2 ? middle[i] + across + v[i] : middle[i] + across - v[i];
      }
      polygon.add(p[0], p[1], p[2], yes);
    }
  }
};

template <class L>
struct MeshCore {
  using V = typename L::V;
  static constexpr bool kRound = false, kSegment = false, kStands = true, kLies = false;
  const ModelView& m;
  const MeshRecord& mesh;
  const V* R;

  COHORT_LANE MeshCore(const ModelView& model, const GeomRecord& g, const V* rot)
      : m(model), mesh(model.mesh[g.data]), R(rot) {}
  /// f(vertex's height along d of the mesh's frame, where its x is; y and z are kVertexBlock further each)
  template <class F>
  COHORT_LANE void heights(const V* d, F f) const {
    const float* block = m.mesh_vertex + mesh.first_vertex;
    for (int first = 0; first < mesh.vertex_count; first += kVertexBlock, block += 3 * kVertexBlock) {
      const int count = mesh.vertex_count - first < kVertexBlock ? mesh.vertex_count - first : kVertexBlock;
      for (int i = 0; i < count; ++i) {
        const float* v = block + i;
        f(fma(d[0], V(v[0]), fma(d[1], V(v[kVertexBlock]), d[2] * V(v[2 * kVertexBlock]))), v);
      }
    }
  }
  COHORT_LANE V lowest(const V* d) const {
    V own[3], low(3e38f);
    rotate_back(own, R, d);
    heights(own, [&](V height, const float*) { low = min(low, height); });
    return low;
  }
  COHORT_LANE void span(V& low, V& high, const V* d) const {
    V own[3];
    rotate_back(own, R, d);
    low = V(3e38f), high = V(-3e38f);
    heights(own, [&](V height, const float*) { low = min(low, height), high = max(high, height); });
  }
  COHORT_LANE void lowest_point(V* p, const V* d) const {
    V own[3], low(3e38f), found[3] = {V(0.0f), V(0.0f), V(0.0f)};
    rotate_back(own, R, d);
    heights(own, [&](V height, const float* v) {
      const auto lower = height < low;
      low = select(lower, height, low);
      for (int i = 0; i < 3; ++i) found[i] = select(lower, V(v[i * kVertexBlock]), found[i]);
    });
    rotate(p, R, found);
  }
  COHORT_LANE void middle(V*, const V*, V) const {}
  COHORT_LANE void pull_in(V* p) const {
    V own[3];
    rotate_back(own, R, p);
    for (int f = 0; f < mesh.face_count; ++f) {
      const FaceRecord& face = m.mesh_face[mesh.first_face + f];
      const V out =
          fma(own[0], V(face.normal[0]), fma(own[1], V(face.normal[1]), own[2] * V(face.normal[2]))) - V(face.offset);
      const V back = select(out > V(0.0f), -out, V(0.0f));
      for (int i = 0; i < 3; ++i) own[i] = fma(back, V(face.normal[i]), own[i]);
    }
    rotate(p, R, own);
  }
  COHORT_LANE typename L::M inside(const V* p, V tolerance) const {
    V own[3];
    rotate_back(own, R, p);
    typename L::M yes = tolerance == tolerance;
    for (int f = 0; f < mesh.face_count; ++f) {
      const FaceRecord& face = m.mesh_face[mesh.first_face + f];
      yes = yes & (fma(own[0], V(face.normal[0]), fma(own[1], V(face.normal[1]), own[2] * V(face.normal[2]))) <=
                   V(face.offset) + tolerance);
    }
    return yes;
  }
  template <class F>
  COHORT_LANE void faces(F f) const {
    for (int k = 0; k < mesh.face_count; ++k) {
      const FaceRecord& face = m.mesh_face[mesh.first_face + k];
      V n[3];
      rotate(n, R, face.normal);
      f(n, face.offset);
    }
  }
  template <class F>
  COHORT_LANE void edges(F f) const {
    for (int k = 0; k < mesh.direction_count; ++k) {
      V e[3];
      rotate(e, R, m.mesh_direction + mesh.first_direction + 3 * k);
      f(e);
    }
  }
  /// The face that faces the ground most; of more corners than the lanes have room for, every second, third, ...
  COHORT_LANE void footprint(LanePolygon<L>& polygon, const V* up, typename L::M lanes) const {
    constexpr int kLanes = L::kWidth;
    V own[3], least(3e38f), which(0.0f);
    rotate_back(own, R, up);
    for (int f = 0; f < mesh.face_count; ++f) {
      const FaceRecord& face = m.mesh_face[mesh.first_face + f];
      const V along = fma(own[0], V(face.normal[0]), fma(own[1], V(face.normal[1]), own[2] * V(face.normal[2])));
      const auto less = along < least;
      least = select(less, along, least), which = select(less, V(static_cast<float>(f)), which);
    }
    alignas(64) float at[kMostLaneCorners][3][kLanes] = {}, counts[kLanes] = {};
    int most = 0;
    each_lane(lanes, [&](int lane) {
      const FaceRecord& face = m.mesh_face[mesh.first_face + static_cast<int>(get_lane(which, lane))];
      const int stride = (face.corner_count + kMostLaneCorners - 1) / kMostLaneCorners;
      const int count = face.corner_count / stride;
      for (int k = 0; k < kMostLaneCorners; ++k) {
        // Beyond the last corner the first again.
        const int corner = k < count ? k * stride : 0;
        float p[3];
        mesh_vertex(p, m, mesh, m.mesh_edge[face.first_corner + corner]);
        for (int i = 0; i < 3; ++i) at[k][i][lane] = p[i];
      }
      counts[lane] = static_cast<float>(count);
      most = count > most ? count : most;
    });
    V* const type = nullptr;
    const V count = load(counts, type);
    for (int k = 0; k < most; ++k) {
      V local[3], p[3];
      for (int i = 0; i < 3; ++i) local[i] = load(at[k][i], type);
      rotate(p, R, local);
      polygon.add(p[0], p[1], p[2], V(static_cast<float>(k)) < count);
    }
  }
};

/// A capsule's segment.
template <class L>
struct SegmentCore {
  using V = typename L::V;
  static constexpr bool kRound = false, kSegment = true, kStands = true, kLies = true;
  V end[3];  ///< the upper one; the other is opposite
  V length;  ///< half

  COHORT_LANE SegmentCore(const ModelView&, const GeomRecord& g, const V* R) : length(g.size[1]) {
    for (int i = 0; i < 3; ++i) end[i] = R[3 * i + 2] * length;
  }
  COHORT_LANE V lowest(const V* d) const { return -abs(dot3(end, d)); }
  COHORT_LANE void span(V& low, V& high, const V* d) const { low = lowest(d), high = -low; }
  COHORT_LANE void lowest_point(V* p, const V* d) const {
    const auto back = dot3(end, d) > V(0.0f);
    for (int i = 0; i < 3; ++i) p[i] = select(back, -end[i], end[i]);
  }
  COHORT_LANE void middle(V*, const V*, V) const {}
  COHORT_LANE void pull_in(V* p) const {
    const V share = clip(dot3(end, p) / (length * length), V(-1.0f), V(1.0f));
    for (int i = 0; i < 3; ++i) p[i] = share * end[i];
  }
  COHORT_LANE typename L::M inside(const V* p, V tolerance) const {
    V q[3] = {p[0], p[1], p[2]}, squared(0.0f);
    pull_in(q);
    for (int i = 0; i < 3; ++i) squared = fma(q[i] - p[i], q[i] - p[i], squared);
    return squared <= tolerance * tolerance;
  }
  template <class F>
  COHORT_LANE void faces(F) const {}
  template <class F>
  COHORT_LANE void edges(F f) const {
    f(end);
  }
  /// Whether the footprint is a line.
  COHORT_LANE typename L::M lies(const V* up) const { return up[2] == up[2]; }
  COHORT_LANE void footprint(LanePolygon<L>& polygon, const V*, typename L::M) const {
    const auto yes = length == length;
    polygon.add(end[0], end[1], end[2], yes);
    polygon.add(-end[0], -end[1], -end[2], yes);
  }
};

/// Cosine between a cylinder's axis and the ground's normal above which it stands.
inline constexpr float kUpright = 0.7071068f;

template <class L>
struct CylinderCore {
  using V = typename L::V;
  static constexpr bool kRound = true, kSegment = false, kCaps = true, kStands = true, kLies = true;
  V axis[3], x[3];
  float radius, height;  ///< height: half

  COHORT_LANE CylinderCore(const ModelView&, const GeomRecord& g, const V* R) : radius(g.size[0]), height(g.size[1]) {
    for (int i = 0; i < 3; ++i) axis[i] = R[3 * i + 2], x[i] = R[3 * i];
  }
  COHORT_LANE float thinnest() const { return radius < height ? radius : height; }
  /// What is left of d across the axis.
  COHORT_LANE V across(V* out, const V* d) const {
    const V along = dot3(axis, d);
    for (int i = 0; i < 3; ++i) out[i] = fma(-along, axis[i], d[i]);
    return along;
  }
  COHORT_LANE V lowest(const V* d) const {
    V side[3];
    const V along = across(side, d);
    return fma(abs(along), V(-height), V(-radius) * sqrt(dot3(side, side)));
  }
  COHORT_LANE void span(V& low, V& high, const V* d) const { low = lowest(d), high = -low; }
  COHORT_LANE void lowest_point(V* p, const V* d) const {
    V side[3];
    const V along = across(side, d);
    const V cap = select(along > V(0.0f), V(-height), V(height));
    const V out = V(-radius) / sqrt(max(dot3(side, side), V(1e-30f)));
    for (int i = 0; i < 3; ++i) p[i] = fma(cap, axis[i], out * side[i]);
  }
  COHORT_LANE void middle(V* p, const V* d, V level) const {
    V side[3];
    const V along = across(side, d), at = dot3(axis, p);
    const auto on_cap = V(radius * radius) * dot3(side, side) <= level * level;
    for (int i = 0; i < 3; ++i) p[i] = select(on_cap, at * axis[i], p[i]);
    const auto on_side = abs(along) * V(height) <= level;
    for (int i = 0; i < 3; ++i) p[i] = select(on_side, fma(-at, axis[i], p[i]), p[i]);
  }
  COHORT_LANE void pull_in(V* p) const {
    V side[3];
    const V along = clip(across(side, p), V(-height), V(height)), squared = dot3(side, side);
    const V share = select(squared > V(radius * radius), V(radius) / sqrt(max(squared, V(1e-30f))), V(1.0f));
    for (int i = 0; i < 3; ++i) p[i] = fma(along, axis[i], share * side[i]);
  }
  COHORT_LANE typename L::M inside(const V* p, V tolerance) const {
    V side[3];
    const V along = across(side, p), most = V(radius) + tolerance;
    return (abs(along) <= V(height) + tolerance) & (dot3(side, side) <= most * most);
  }
  template <class F>
  COHORT_LANE void faces(F f) const {
    const V back[3] = {-axis[0], -axis[1], -axis[2]};
    f(axis, height);
    f(back, height);
  }
  template <class F>
  COHORT_LANE void edges(F f) const {
    f(axis);
  }
  COHORT_LANE typename L::M lies(const V* up) const { return abs(dot3(axis, up)) <= V(kUpright); }
  /// Four points of the lower rim, as on a plane (plane_cylinder), which turn with the cylinder; or the line along its
  /// side.
  COHORT_LANE void footprint(LanePolygon<L>& polygon, const V* up, typename L::M) const {
    const V zero(0.0f), one(1.0f);
    V y[3], side[3];
    cross(y, axis, x);
    const V along = across(side, up), cap = select(along > zero, V(-height), V(height));
    const auto upright = abs(along) > V(kUpright), yes = one > zero;
    const V out = V(-radius) / sqrt(max(dot3(side, side), V(1e-30f)));
    for (int k = 0; k < 4; ++k) {
      const V end(k == 1 ? -height : height), reach(k < 2 ? radius : -radius);
      const V* const spoke = k % 2 == 0 ? x : y;
      V p[3];
      for (int i = 0; i < 3; ++i) {
        const V on_cap = fma(cap, axis[i], reach * spoke[i]);
        p[i] = select(upright, on_cap, fma(end, axis[i], out * side[i]));
      }
      polygon.add(p[0], p[1], p[2], k < 2 ? yes : upright);
    }
  }
  COHORT_LANE V tilt(const V* d) const { return V(height) * dot3(axis, d); }
  COHORT_LANE void project(V* out, const V* d) const {
    across(out, d);
    for (int i = 0; i < 3; ++i) out[i] *= V(radius);
  }
  /// From a corner inside towards where it leaves through the side, opposite.
  COHORT_LANE typename L::M out_of(V* d, const V* corner) const {
    across(d, corner);
    const V squared = dot3(d, d);
    const V inverse = V(-1.0f) / sqrt(max(squared, V(1e-30f)));
    for (int i = 0; i < 3; ++i) d[i] *= inverse;
    return squared > V(1e-14f) * V(radius * radius);
  }
};

template <class L>
struct EllipsoidCore {
  using V = typename L::V;
  static constexpr bool kRound = true, kSegment = false, kCaps = false, kStands = false, kLies = false;
  V axis[3][3];
  const float* size;

  COHORT_LANE EllipsoidCore(const ModelView&, const GeomRecord& g, const V* R) : size(g.size) {
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < 3; ++i) axis[k][i] = R[3 * i + k];
    }
  }
  COHORT_LANE float thinnest() const {
    const float least = size[0] < size[1] ? size[0] : size[1];
    return size[2] < least ? size[2] : least;
  }
  COHORT_LANE V lowest(const V* d) const {
    V squared(0.0f);
    for (int k = 0; k < 3; ++k) {
      const V along = dot3(axis[k], d) * V(size[k]);
      squared = fma(along, along, squared);
    }
    return -sqrt(squared);
  }
  COHORT_LANE void span(V& low, V& high, const V* d) const { low = lowest(d), high = -low; }
  COHORT_LANE void lowest_point(V* p, const V* d) const {
    V along[3], squared(0.0f);
    for (int k = 0; k < 3; ++k) {
      along[k] = dot3(axis[k], d) * V(size[k]);
      squared = fma(along[k], along[k], squared);
    }
    const V inverse = V(-1.0f) / sqrt(max(squared, V(1e-30f)));
    for (int i = 0; i < 3; ++i) p[i] = V(0.0f);
    for (int k = 0; k < 3; ++k) {
      const V at = along[k] * inverse * V(size[k]);
      for (int i = 0; i < 3; ++i) p[i] = fma(at, axis[k][i], p[i]);
    }
  }
  COHORT_LANE void middle(V*, const V*, V) const {}
  COHORT_LANE void pull_in(V*) const {}
  COHORT_LANE typename L::M inside(const V* p, V tolerance) const {
    V squared(0.0f);
    for (int k = 0; k < 3; ++k) {
      const V share = dot3(axis[k], p) / (V(size[k]) + tolerance);
      squared = fma(share, share, squared);
    }
    return squared <= V(1.0f);
  }
  template <class F>
  COHORT_LANE void faces(F) const {}
  template <class F>
  COHORT_LANE void edges(F) const {}
  COHORT_LANE V tilt(const V*) const { return V(0.0f); }
  COHORT_LANE void project(V* out, const V* d) const {
    for (int k = 0; k < 3; ++k) out[k] = dot3(axis[k], d) * V(size[k]);
  }
  /// From a corner inside towards where it leaves, opposite: the nearest point x of the surface has x - corner = t
  /// times its normal there (Eberly 2013, Distance from a point to an ellipsoid); t is found by halving.
  COHORT_LANE typename L::M out_of(V* d, const V* corner) const {
    V at[3], squared(0.0f);
    const float least = thinnest();
    for (int k = 0; k < 3; ++k) {
      at[k] = dot3(axis[k], corner) * V(size[k]);
      const V share = at[k] * V(1.0f / (size[k] * size[k]));
      squared = fma(share, share, squared);
    }
    const typename L::M inside = squared < V(1.0f);
    // The sum of (at / (size^2 + t))^2 falls from beyond 1 to below it over (-least^2, 0]; it is convex.
    V low(-(least * least)), high(0.0f);
    for (int step = 0; step < 22; ++step) {
      const V t = V(0.5f) * (low + high);
      V sum(0.0f);
      for (int k = 0; k < 3; ++k) {
        const V share = at[k] / (V(size[k] * size[k]) + t);
        sum = fma(share, share, sum);
      }
      const auto beyond = sum > V(1.0f);
      low = select(beyond, t, low), high = select(beyond, high, t);
    }
    V sum(0.0f);
    for (int i = 0; i < 3; ++i) d[i] = V(0.0f);
    for (int k = 0; k < 3; ++k) {
      // The normal at the nearest point.
      const V along = at[k] / (V(size[k]) * max(V(size[k] * size[k]) + high, V(1e-12f)));
      sum = fma(along, along, sum);
      for (int i = 0; i < 3; ++i) d[i] = fma(-along, axis[k][i], d[i]);
    }
    const V inverse = V(1.0f) / sqrt(max(sum, V(1e-30f)));
    for (int i = 0; i < 3; ++i) d[i] *= inverse;
    return inside & (sum > V(1e-20f));
  }
};

}  // namespace cohort::sim
