/// Capsules, cylinders, ellipsoids, boxes and meshes of few faces on a height field, over lanes.
///
/// A prism and a convex shape overlap least, or are apart, along the axis that is best for all pairs of their parts:
/// normals of faces, axes across two edges, and where a round surface meets an edge or a corner the axis that the
/// search along the normals of that part ends at. The points found on both shapes tell that it is the right one: each
/// lies on its shape, one over the other along the axis. A lane where they do not (parallel faces; parts that are not
/// looked at) is searched alone (collide/height_field_prisms.h).
#pragma once
#include "sim/collide/queued.h"
#include "sim/kernels/farthest.h"
#include "sim/kernels/height_field_sphere.h"
#if defined(COHORT_SEARCHES_IN_PLACE)
#include "sim/collide/height_field_prisms.h"
#endif

namespace cohort::sim {

/// How far outside its shape a point may seem to lie, in terms of the bounding sphere's radius: what rounding leaves
/// undecided.
inline constexpr float kPointRounding = 2e-5f;
/// Points that are lower than others by no more than this share of it are level.
inline constexpr float kLevel = 5e-5f;
/// A round core's depth up to this share of its least half size is found by axes.
inline constexpr float kShallow = 0.4f;
/// What an axis must be better by to displace one found before, likewise.
inline constexpr float kOverlapRounding = 1e-6f;

/// Where a prism and a shape's core meet, in the field's frame about the shape's centre.
template <class L>
struct PrismTouch {
  using V = typename L::V;
  V apart;           ///< m, along the axis; negative: overlap
  V axis[3];         ///< unit, from the prism to the shape
  V on1[3], on2[3];  ///< points of the prism and of the core
  typename L::M known;
};

/// The best axis so far, and which parts it belongs to.
template <class L>
struct BestAxis {
  using V = typename L::V;
  using M = typename L::M;
  /// The prism's face (or edge) and a point of the core; a face of the core and a corner; an edge of each.
  static constexpr float kPointOfCore = 0, kCorner = 1, kEdges = 2;
  V apart = V(-1e9f), axis[3] = {V(0.0f), V(0.0f), V(1.0f)}, parts = V(kPointOfCore);
  V from[3] = {V(0.0f), V(0.0f), V(0.0f)};  ///< kEdges: a point of the prism's edge, and along both
  V edge1[3] = {V(1.0f), V(0.0f), V(0.0f)}, edge2[3] = {V(0.0f), V(1.0f), V(0.0f)};

  COHORT_LANE M look(V at, const V* along, float which, V more, M lanes) {
    const M better = lanes & (at > apart + more);
    apart = select(better, at, apart);
    parts = select(better, V(which), parts);
    for (int i = 0; i < 3; ++i) axis[i] = select(better, along[i], axis[i]);
    return better;
  }
};

// ---- cores: a shape without the radius around it, about its centre, in the field's frame

template <class L>
struct BoxCore {
  using V = typename L::V;
  static constexpr bool kRound = false, kSegment = false;
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
};

template <class L>
struct MeshCore {
  using V = typename L::V;
  static constexpr bool kRound = false, kSegment = false;
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
};

/// A capsule's segment.
template <class L>
struct SegmentCore {
  using V = typename L::V;
  static constexpr bool kRound = false, kSegment = true;
  V end[3];  ///< the upper one; the other is opposite
  V length;  ///< half

  COHORT_LANE SegmentCore(const ModelView&, const GeomRecord& g, const V* R) : length(g.size[1]) {
    for (int i = 0; i < 3; ++i) end[i] = R[3 * i + 2] * length;
  }
  COHORT_LANE V lowest(const V* d) const { return -abs(dot3(end, d)); }
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
};

template <class L>
struct CylinderCore {
  using V = typename L::V;
  static constexpr bool kRound = true, kSegment = false;
  static constexpr int kHalvings = 8;  ///< near its axis, the lowest point goes around the rim at once
  V axis[3];
  float radius, height;  ///< height: half

  COHORT_LANE CylinderCore(const ModelView&, const GeomRecord& g, const V* R) : radius(g.size[0]), height(g.size[1]) {
    for (int i = 0; i < 3; ++i) axis[i] = R[3 * i + 2];
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
  static constexpr bool kRound = true, kSegment = false;
  static constexpr int kHalvings = 0;
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

// ---- axes

/// Where an axis turned from a to b about an edge through `from` is best for a round core: the depth's slope over the
/// arc is that of the lines from the core's lowest point to the edge. There may be two places, one of them a face's: of
/// those inside some quarter of the arc the least deep counts.
template <class L, class Core>
COHORT_LANE typename L::M best_between(const Core& core, const typename L::V* a, const typename L::V* b,
                                       const typename L::V* from, typename L::M lanes, typename L::V* d) {
  using V = typename L::V;
  using M = typename L::M;
  constexpr int kParts = 4;
  const V zero(0.0f), one(1.0f), half(0.5f);
  V turn[3], depth;
  for (int i = 0; i < 3; ++i) turn[i] = b[i] - a[i];
  const auto slope = [&](V share) {
    for (int i = 0; i < 3; ++i) d[i] = fma(share, turn[i], a[i]);
    const V inverse = one / sqrt(max(dot3(d, d), V(1e-30f)));
    for (int i = 0; i < 3; ++i) d[i] *= inverse;
    V p[3];
    core.lowest_point(p, d);
    const V along = dot3(d, turn);
    V sum = zero;
    depth = zero;
    for (int i = 0; i < 3; ++i) {
      const V over = from[i] - p[i];
      depth = fma(over, d[i], depth);
      sum = fma(over, fma(-along, d[i], turn[i]), sum);
    }
    return sum;
  };
  V low = zero, high = one, at_low = -one, at_high = one, least(3e38f), last_share = zero, last = slope(zero);
  M between = lanes & (zero > one);
  for (int part = 1; part <= kParts; ++part) {
    const V share(static_cast<float>(part) / kParts);
    const V before = depth, at = slope(share);
    const M here = lanes & (last < zero) & (at > zero) & (min(before, depth) < least);
    low = select(here, last_share, low), high = select(here, share, high);
    at_low = select(here, last, at_low), at_high = select(here, at, at_high);
    least = select(here, min(before, depth), least);
    between = between | here;
    last = at, last_share = share;
  }
  if (!any(between)) return between;
  // Halving, then false position, where an end that stays twice counts half (Dowell and Jarratt 1971).
  V kept = zero;
  for (int step = 0; step < Core::kHalvings + 8; ++step) {
    const bool halve = step < Core::kHalvings;
    const V share = halve ? half * (low + high) : low - at_low * ((high - low) / (at_high - at_low));
    const V at = slope(share);
    const M below = at < zero;
    const V weight_low = select(kept > zero, half, one), weight_high = select(kept < zero, half, one);
    at_high = select(below, at_high * weight_high, at);
    at_low = select(below, at, at_low * weight_low);
    low = select(below, share, low), high = select(below, high, share);
    if (!halve) kept = select(below, -one, one);
  }
  return between;
}

/// Axes of a round core that are no normals of faces and across no straight edges.
template <class L, class Core>
COHORT_LANE void round_axes(BestAxis<L>& best, const Prism<L>& prism, const Core& core, typename L::V enough,
                            typename L::V more, typename L::M near) {
  using V = typename L::V;
  const V zero(0.0f);
  V d[3];
  const auto beside = [&](int k, V* n) { n[0] = V(prism.wall[k][0]), n[1] = V(prism.wall[k][1]), n[2] = zero; };
  for (int k = 0; k < 3; ++k) {
    const auto left = near & (best.apart <= enough);
    if (!any(left)) return;
    // About the top's edge, between the top and the wall under the edge; about the edge between two walls; out of a
    // corner.
    V wall[3], next[3];
    beside(k, wall);
    auto found = best_between<L>(core, prism.up, wall, prism.corner[k], left, d);
    if (any(found)) best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kPointOfCore, more, found);
    beside(k == 0 ? 2 : k - 1, next);
    // Both are level: where the core is lowest along them is compared with the edge at that height.
    const V* const corner = prism.corner[k];
    const V level[3] = {corner[0], corner[1], zero};
    found = best_between<L>(core, next, wall, level, left, d);
    if (any(found)) best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kPointOfCore, more, found);
    const auto inside = left & core.inside(corner, zero);
    if (!any(inside)) continue;
    found = inside & core.out_of(d, corner);
    best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kCorner, more, found);
  }
}

/// Fills in what `best` is, where its parts lie on each other. size: of the core's bounding sphere, m.
template <class L, class Core>
COHORT_LANE void points_of(PrismTouch<L>& out, const BestAxis<L>& best, const Prism<L>& prism, const Core& core,
                           float size, typename L::M near) {
  using V = typename L::V;
  const V* const d = best.axis;
  const V tolerance(kPointRounding * size);
  V p[3];
  core.lowest_point(p, d);
  out.apart = best.apart;
  for (int i = 0; i < 3; ++i) {
    out.axis[i] = d[i];
    out.on2[i] = p[i];
    out.on1[i] = fma(-best.apart, d[i], p[i]);
  }
  const auto corner = near & (best.parts == V(BestAxis<L>::kCorner));
  if (any(corner)) {
    V c[3] = {V(0.0f), V(0.0f), V(0.0f)};
    prism.highest_point(c, d);
    for (int i = 0; i < 3; ++i) {
      out.on1[i] = select(corner, c[i], out.on1[i]);
      out.on2[i] = select(corner, fma(best.apart, d[i], c[i]), out.on2[i]);
    }
  }
  const auto edges = near & (best.parts == V(BestAxis<L>::kEdges));
  if (any(edges)) {
    // The lines' nearest points.
    const V *e1 = best.edge1, *e2 = best.edge2;
    V between[3];
    for (int i = 0; i < 3; ++i) between[i] = p[i] - best.from[i];
    const V aa = dot3(e1, e1), ab = dot3(e1, e2), bb = dot3(e2, e2), da = dot3(e1, between), db = dot3(e2, between);
    const V inverse = V(1.0f) / fma(aa, bb, -(ab * ab));
    const V share1 = fma(da, bb, -(ab * db)) * inverse, share2 = fma(ab, da, -(aa * db)) * inverse;
    for (int i = 0; i < 3; ++i) {
      out.on1[i] = select(edges, fma(share1, e1[i], best.from[i]), out.on1[i]);
      out.on2[i] = select(edges, fma(share2, e2[i], p[i]), out.on2[i]);
    }
  }
  V beside(0.0f);
  for (int i = 0; i < 3; ++i) {
    const V off = fma(-best.apart, d[i], out.on2[i] - out.on1[i]);
    beside = fma(off, off, beside);
  }
  out.known =
      near & prism.inside(out.on1, tolerance) & core.inside(out.on2, tolerance) & (beside <= tolerance * tolerance);
  const auto left = near & flip(out.known);
  if (!any(left)) return;
  // Parts that are level to each other have more points than these: from the middle of the core's part to the nearest
  // point of the top and back, where the sides cross a few times.
  const V level(kLevel * size), least = core.lowest(d) + level, most = prism.highest(d) - level;
  core.middle(p, d, level);
  for (int step = 0; step < 8; ++step) {
    V about[3][3], on1[3], on2[3];
    for (int i = 0; i < 3; ++i) {
      const V at = fma(-best.apart, d[i], p[i]);
      for (int k = 0; k < 3; ++k) about[k][i] = prism.corner[k][i] - at;
      on2[i] = p[i];
    }
    nearest_point(on1, about[0], about[1], about[2]);
    for (int i = 0; i < 3; ++i) on2[i] += on1[i], on1[i] = fma(-best.apart, d[i], on2[i]);
    const auto here =
        left & flip(out.known) & (dot3(d, on1) >= most) & (dot3(d, on2) <= least) & core.inside(on2, tolerance);
    for (int i = 0; i < 3; ++i) {
      out.on1[i] = select(here, on1[i], out.on1[i]);
      out.on2[i] = select(here, on2[i], out.on2[i]);
      p[i] = on2[i];
    }
    out.known = out.known | here;
    if (!any(left & flip(out.known))) return;
    core.pull_in(p);
  }
}

/// Of the lanes in `near`; those whose `apart` is beyond `enough` have no contact, whatever else they say. extent: of
/// the core; size: its bounding sphere's radius, m.
template <class L, class Core>
COHORT_KERNEL void touch_prism(PrismTouch<L>& out, const Prism<L>& prism, const Core& core,
                               const FieldExtent<typename L::V>& extent, float size, typename L::V enough,
                               typename L::M near) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f), more(kOverlapRounding * size);
  BestAxis<L> best;
  best.look(core.lowest(prism.up) - prism.top_at, prism.up, BestAxis<L>::kPointOfCore, zero, near);
  const V walls[2][3] = {{-extent.high[0], extent.low_across, extent.low[1]},
                         {-extent.high_across, extent.low[0], -extent.high[1]}};
  for (int k = 0; k < 3; ++k) {
    const V n[3] = {V(prism.wall[k][0]), V(prism.wall[k][1]), zero};
    best.look(walls[prism.half][k] - prism.wall_at[k], n, BestAxis<L>::kPointOfCore, more, near);
  }
  const V down[3] = {zero, zero, V(-1.0f)};
  best.look(prism.floor - extent.high[2], down, BestAxis<L>::kPointOfCore, more, near);
  if (any(near & (best.apart <= enough))) {
    core.faces([&](const V* n, float offset) {
      const V d[3] = {-n[0], -n[1], -n[2]};
      best.look(V(-offset) - prism.highest(d), d, BestAxis<L>::kCorner, more, near);
    });
  }
  if (any(near & (best.apart <= enough))) {
    core.edges([&](const V* e) {
      for (int k = 0; k < 3; ++k) {
        // An edge of the top, whose own axes look up.
        const V *from = prism.corner[k], *to = prism.corner[k == 2 ? 0 : k + 1];
        V along[3], d[3];
        for (int i = 0; i < 3; ++i) along[i] = to[i] - from[i];
        cross(d, along, e);
        const V squared = dot3(d, d);
        const V inverse = select(d[2] < zero, -one, one) / sqrt(max(squared, V(1e-30f)));
        for (V& x : d) x *= inverse;
        const auto own = near & (squared > V(1e-6f) * dot3(along, along) * dot3(e, e));
        const auto better = best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kEdges, more, own);
        for (int i = 0; i < 3; ++i) {
          best.from[i] = select(better, from[i], best.from[i]);
          best.edge1[i] = select(better, along[i], best.edge1[i]);
          best.edge2[i] = select(better, e[i], best.edge2[i]);
        }
      }
      // The upright ones, both ways.
      const V squared = fma(e[0], e[0], e[1] * e[1]);
      const auto own = near & (squared > V(1e-6f) * dot3(e, e));
      const V inverse = one / sqrt(max(squared, V(1e-30f)));
      const V upright[3] = {zero, zero, one};
      for (int k = 0; k < 2; ++k) {
        const V side = k == 0 ? inverse : -inverse;
        const V d[3] = {e[1] * side, -(e[0] * side), zero};
        const auto better = best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kEdges, more, own);
        V corner[3] = {zero, zero, zero};
        prism.highest_point(corner, d);
        for (int i = 0; i < 3; ++i) {
          best.from[i] = select(better, corner[i], best.from[i]);
          best.edge1[i] = select(better, upright[i], best.edge1[i]);
          best.edge2[i] = select(better, e[i], best.edge2[i]);
        }
      }
    });
  }
  if constexpr (Core::kRound) round_axes<L>(best, prism, core, enough, more, near);
  points_of<L>(out, best, prism, core, size, near & (best.apart <= enough));
  // Of a round core that is deep in the prism, an axis may be best among those near it only.
  if constexpr (Core::kRound) out.known = out.known & (out.apart >= V(-kShallow * core.thinnest()));
}

/// A segment above a prism's top, where it does not pass through it; true: these lanes are known.
template <class L>
COHORT_KERNEL typename L::M segment_over_top(PrismTouch<L>& out, const Prism<L>& prism, const SegmentCore<L>& core,
                                             typename L::M near) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f);
  const V(*corner)[3] = prism.corner;
  V begin[3], along[3];
  for (int i = 0; i < 3; ++i) begin[i] = -core.end[i], along[i] = core.end[i] + core.end[i];
  // Both ends against the triangle.
  V best(3e38f), on1[3], on2[3];
  const auto look = [&](const V* p, const V* q) {
    V d[3];
    for (int i = 0; i < 3; ++i) d[i] = q[i] - p[i];
    const V squared = dot3(d, d);
    const auto nearer = squared < best;
    best = select(nearer, squared, best);
    for (int i = 0; i < 3; ++i) on1[i] = select(nearer, p[i], on1[i]), on2[i] = select(nearer, q[i], on2[i]);
  };
  for (int i = 0; i < 3; ++i) on1[i] = on2[i] = zero;
  for (int k = 0; k < 2; ++k) {
    const V* at = k == 0 ? begin : core.end;
    V about[3][3], p[3];
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 3; ++i) about[j][i] = corner[j][i] - at[i];
    }
    nearest_point(p, about[0], about[1], about[2]);
    for (int i = 0; i < 3; ++i) p[i] += at[i];
    look(p, at);
  }
  // The segment against the triangle's sides (Ericson 2005, section 5.1.9).
  const V a = dot3(along, along);
  for (int k = 0; k < 3; ++k) {
    const V *from = corner[k], *to = corner[k == 2 ? 0 : k + 1];
    V side[3], r[3], p[3], q[3];
    for (int i = 0; i < 3; ++i) side[i] = to[i] - from[i], r[i] = begin[i] - from[i];
    const V e = dot3(side, side), f = dot3(side, r), c = dot3(along, r), b = dot3(along, side);
    const V det = fma(a, e, -(b * b));
    const auto skew = det > V(1e-7f) * (a * e);
    V s = select(skew, clip(fma(b, f, -(c * e)) / select(skew, det, one), zero, one), zero);
    V t = fma(b, s, f) / e;
    const auto low = t<zero, high = t> one;
    s = select(low, clip(-c / a, zero, one), select(high, clip((b - c) / a, zero, one), s));
    t = clip(t, zero, one);
    for (int i = 0; i < 3; ++i) p[i] = fma(t, side[i], from[i]), q[i] = fma(s, along[i], begin[i]);
    look(p, q);
  }
  // Through the triangle?
  const V below = dot3(prism.up, begin) - prism.top_at, above = dot3(prism.up, core.end) - prism.top_at;
  const V share = below / select(below != above, below - above, one);
  auto pierced = below * above <= zero;
  for (int k = 0; k < 3; ++k) {
    const V x = fma(share, along[0], begin[0]), y = fma(share, along[1], begin[1]);
    pierced = pierced & (fma(V(prism.wall[k][0]), x, V(prism.wall[k][1]) * y) <= prism.wall_at[k]);
  }
  // The prism's nearest point is on its top where the way to the segment goes up.
  const auto known = near & flip(pierced) & (on2[2] > on1[2]) & (best > V(1e-14f));
  out.apart = sqrt(best);
  const V inverse = one / select(known, out.apart, one);
  for (int i = 0; i < 3; ++i) {
    out.axis[i] = (on2[i] - on1[i]) * inverse;
    out.on1[i] = on1[i], out.on2[i] = on2[i];
  }
  out.known = known;
  return known;
}

/// How far a core reaches in the field's frame.
template <class L, class Core>
COHORT_LANE FieldExtent<typename L::V> extent_of(const Core& core, const CellGrid& grid) {
  using V = typename L::V;
  FieldExtent<V> e;
  const V zero(0.0f), one(1.0f);
  for (int i = 0; i < 3; ++i) {
    V d[3] = {zero, zero, zero};
    d[i] = one;
    e.low[i] = core.lowest(d);
    d[i] = -one;
    e.high[i] = -core.lowest(d);
  }
  const V across[3] = {V(grid.across[0]), V(grid.across[1]), zero};
  const V back[3] = {-across[0], -across[1], zero};
  e.low_across = core.lowest(across);
  e.high_across = -core.lowest(back);
  return e;
}

/// Contacts of a height field and the shapes in `near`, as height_field_sphere's. search: as Constraints::search.
template <class L, class Core>
COHORT_KERNEL int height_field_core(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                    const PairPose<typename L::V>& pose, typename L::M near,
                                    [[maybe_unused]] void* search) {
  using V = typename L::V;
  using M = typename L::M;
  constexpr int kLanes = L::kWidth;
  const GeomRecord& g = m.geom[p.geom2];
  const HeightFieldRecord& h = m.height_field[m.geom[p.geom1].data];
  const CellGrid grid(h);
  const float radius = g.shape == kCapsule ? g.size[0] : 0.0f, reach = p.margin + p.gap;
  V d[3], s[3], R[9];
  for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i];
  rotate_back(s, pose.rot1, d);
  for (int j = g.shape == kCapsule ? 2 : 0; j < 3; ++j) {
    const V column[3] = {pose.rot2[j], pose.rot2[3 + j], pose.rot2[6 + j]};
    V turned[3];
    rotate_back(turned, pose.rot1, column);
    for (int i = 0; i < 3; ++i) R[3 * i + j] = turned[i];
  }
  const Core core(m, g, R);
  const FieldExtent<V> extent = extent_of<L>(core, grid);
  FieldExtent<V> whole = extent;
  const V r(radius), enough(radius + reach);
  for (int i = 0; i < 3; ++i) whole.low[i] -= r, whole.high[i] += r;
  whole.low_across -= r, whole.high_across += r;
  LaneContacts<L> found;
  alignas(64) float result[7][kLanes], points[9][kLanes], place[3][kLanes], turn[9][kLanes], axes[9][kLanes];
  bool stored = false;
  each_prism<L>(m, h, s, whole, reach, near, [&](const Prism<L>& prism, M met) {
    met = met & (core.lowest(prism.up) - prism.top_at <= enough);
    if (!any(met)) return;
    PrismTouch<L> touch;
    if constexpr (Core::kSegment) {
      const M over = segment_over_top<L>(touch, prism, core, met);
      const M left = met & flip(over);
      if (any(left)) {
        PrismTouch<L> other;
        touch_prism<L>(other, prism, core, extent, g.radius, enough, left);
        touch.apart = select(left, other.apart, touch.apart);
        for (int i = 0; i < 3; ++i) {
          touch.axis[i] = select(left, other.axis[i], touch.axis[i]);
          touch.on1[i] = select(left, other.on1[i], touch.on1[i]);
          touch.on2[i] = select(left, other.on2[i], touch.on2[i]);
        }
        touch.known = over | (left & other.known);
      }
    } else {
      touch_prism<L>(touch, prism, core, extent, g.radius, enough, met);
    }
    met = met & (touch.apart <= enough);
    const unsigned hit = lane_bits(met & touch.known), odd = lane_bits(met & flip(touch.known));
    if (hit != 0) {
      V normal[3], point[3];
      for (int i = 0; i < 3; ++i) point[i] = V(0.5f) * (touch.on1[i] + fma(-touch.axis[i], r, touch.on2[i]));
      rotate(normal, pose.rot1, touch.axis);
      rotate(point, pose.rot1, point);
      store(result[0], touch.apart - r);
      for (int i = 0; i < 3; ++i) store(result[1 + i], point[i] + pose.pos2[i]), store(result[4 + i], normal[i]);
      for (int lane = 0; lane < kLanes; ++lane) {
        if ((hit >> lane & 1u) == 0) continue;
        const float at_lane[3] = {result[1][lane], result[2][lane], result[3][lane]};
        const float normal_lane[3] = {result[4][lane], result[5][lane], result[6][lane]};
        found.keep(lane, result[0][lane], at_lane, normal_lane);
      }
    }
    if (odd == 0) return;
    if (!stored) {
      stored = true;
      for (int i = 0; i < 3; ++i) store(place[i], pose.pos2[i]);
      for (int i = 0; i < 9; ++i) {
        store(turn[i], pose.rot1[i]);
        store(axes[i], g.shape == kCapsule && i % 3 != 2 ? V(0.0f) : R[i]);
      }
    }
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < 3; ++i) store(points[3 * k + i], prism.corner[k][i]);
    }
    store(result[0], prism.floor);
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((odd >> lane & 1u) == 0) continue;
      // About the shape's centre, in the field's axes.
      float corners[18], in_field[7], point[3], normal[3];
      for (int k = 0; k < 9; ++k) {
        corners[9 + k] = points[k][lane], corners[k] = k % 3 == 2 ? result[0][lane] : points[k][lane];
      }
      QueuedShape shape{&g, {0, 0, 0}, {}};
      for (int i = 0; i < 9; ++i) shape.rot[i] = axes[i][lane];
#if defined(COHORT_SEARCHES_IN_PLACE)
      if (!collide::prism_and_shape(m, corners, shape, reach, farthest_function<L>(), in_field,
                                    *static_cast<collide::SearchSpace*>(search))) {
        continue;
      }
#else
      if (!prism_and_shape(m, corners, shape, reach, farthest_function<L>(), in_field)) continue;
#endif
      for (int i = 0; i < 3; ++i) {
        point[i] = place[i][lane], normal[i] = 0.0f;
        for (int k = 0; k < 3; ++k) {
          point[i] += turn[3 * i + k][lane] * in_field[1 + k];
          normal[i] += turn[3 * i + k][lane] * in_field[4 + k];
        }
      }
      found.keep(lane, in_field[0], point, normal);
    }
  });
  return found.write(out);
}

/// Of any shape that the lanes know.
template <class L>
COHORT_LANE int height_field_shape(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                   const PairPose<typename L::V>& pose, typename L::M near, void* search) {
  switch (m.geom[p.geom2].shape) {
    case kSphere:
      return height_field_sphere<L>(out, m, p, pose, near);
    case kCapsule:
      return height_field_core<L, SegmentCore<L>>(out, m, p, pose, near, search);
    case kEllipsoid:
      return height_field_core<L, EllipsoidCore<L>>(out, m, p, pose, near, search);
    case kCylinder:
      return height_field_core<L, CylinderCore<L>>(out, m, p, pose, near, search);
    case kBox:
      return height_field_core<L, BoxCore<L>>(out, m, p, pose, near, search);
    default:
      return height_field_core<L, MeshCore<L>>(out, m, p, pose, near, search);
  }
}

}  // namespace cohort::sim
