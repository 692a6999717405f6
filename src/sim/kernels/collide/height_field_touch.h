/// Where a prism of a height field and a convex shape touch, over lanes.
///
/// They overlap least, or are apart, along the axis that is best for all pairs of their parts: normals of faces, axes
/// across two edges, and where a round surface meets an edge or a corner the axis that the search along the normals of
/// that part ends at. The points found on both shapes tell that it is the right one: each lies on its shape, one over
/// the other along the axis.
#pragma once
#include "sim/kernels/collide/height_field_arcs.h"
#include "sim/kernels/collide/height_field_sphere.h"

namespace cohort::sim {

/// How far outside its shape a point may seem to lie, in terms of the bounding sphere's radius: what rounding leaves
/// undecided.
inline constexpr float kPointRounding = 2e-5f;
/// Points that are lower than others by no more than this share of it are level.
inline constexpr float kLevel = 5e-5f;
/// A round core's depth up to this share of its least half size is found by axes.
inline constexpr float kShallow = 0.4f;
/// What an axis must be better by to displace one found before, in terms of the bounding sphere's radius.
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

/// Of the lanes in `near`; those whose `apart` is beyond `enough` have no contact, whatever else they say. reach: the
/// core's; size: its bounding sphere's radius, m.
template <class L, class Core>
COHORT_KERNEL void touch_prism(PrismTouch<L>& out, const Prism<L>& prism, const Core& core, const CoreReach<L>& reach,
                               float size, typename L::V enough, typename L::M near) {
  using V = typename L::V;
  const V zero(0.0f), more(kOverlapRounding * size);
  BestAxis<L> best;
  best.look(core.lowest(prism.up) - prism.top_at, prism.up, BestAxis<L>::kPointOfCore, zero, near);
  const FieldExtent<V>& extent = reach.extent;
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
  edge_axes<L>(best, prism, core, more, near & (best.apart <= enough));
  if constexpr (Core::kRound) round_axes<L>(best, prism, core, reach, size, enough, more, near);
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

}  // namespace cohort::sim
