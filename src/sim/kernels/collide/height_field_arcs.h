/// The axes across edges along which a height field's prism and a core may be apart, or overlap least: of a prism's and
/// a core's straight edge, and where a round core meets a prism's edge or corner.
#pragma once
#include "sim/kernels/collide/height_field.h"
#include "sim/kernels/collide/height_field_cores.h"

namespace cohort::sim {

/// The place on an arc is known when the slope is that of a turn by so much, rad, and of an overlap by so much of the
/// bounding sphere's radius.
inline constexpr float kArcTolerance = 2e-6f, kArcDepth = 0.05f;

/// How far a core reaches, and a round one's lowest points along the walls of the prisms over the diagonals; along the
/// walls of those under them they are the opposite ones.
template <class L>
struct CoreReach {
  using V = typename L::V;
  FieldExtent<V> extent;
  V at_wall[3][3];
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
  /// Whether an axis along which the parts are apart by up to `at` can be better; both times its length, of which
  /// `squared` is the square.
  COHORT_LANE M may_beat(V at, V squared) const { return at * abs(at) > apart * abs(apart) * squared; }
};

/// Axes across an edge of the prism and one of the core.
template <class L, class Core>
COHORT_LANE void edge_axes(BestAxis<L>& best, const Prism<L>& prism, const Core& core, typename L::V more,
                           typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  if (!any(near)) return;
  const V zero(0.0f), one(1.0f), upright[3] = {zero, zero, one};
  // The core's lowest point so far, which lies near the top where the overlap is small: along no axis is the core
  // farther from an edge than this point. Few axes are left to be looked at closely.
  V low[3], along[3][3], above[3][3];
  core.lowest_point(low, best.axis);
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 3; ++i) {
      along[k][i] = prism.corner[k == 2 ? 0 : k + 1][i] - prism.corner[k][i];
      above[k][i] = low[i] - prism.corner[k][i];
    }
  }
  const auto look = [&](const V* d, const V* from, const V* edge, const V* e, M lanes) {
    const auto better = best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kEdges, more, lanes);
    if (!any(better)) return;
    for (int i = 0; i < 3; ++i) {
      best.from[i] = select(better, from[i], best.from[i]);
      best.edge1[i] = select(better, edge[i], best.edge1[i]);
      best.edge2[i] = select(better, e[i], best.edge2[i]);
    }
  };
  core.edges([&](const V* e) {
    const V least = V(1e-6f) * dot3(e, e);
    for (int k = 0; k < 3; ++k) {
      // An edge of the top, whose own axes look up.
      V d[3];
      cross(d, along[k], e);
      const V squared = dot3(d, d), side = select(d[2] < zero, -one, one);
      // The third corner may be higher.
      const V at = side * dot3(d, above[k]) + min(side * dot3(d, along[k == 0 ? 2 : k - 1]), zero);
      const M open = near & best.may_beat(at, squared) & (squared > least * dot3(along[k], along[k]));
      if (!any(open)) continue;
      const V inverse = side / sqrt(max(squared, V(1e-30f)));
      for (V& x : d) x *= inverse;
      look(d, prism.corner[k], along[k], e, open);
    }
    // The upright ones, both ways.
    const V squared = fma(e[0], e[0], e[1] * e[1]), at = fma(e[1], low[0], -(e[0] * low[1]));
    V least_corner(3e38f), most_corner(-3e38f);
    for (const auto& c : prism.corner) {
      const V there = fma(e[1], c[0], -(e[0] * c[1]));
      least_corner = min(least_corner, there), most_corner = max(most_corner, there);
    }
    const M own = near & (squared > least);
    const M first = own & best.may_beat(at - most_corner, squared);
    const M second = own & best.may_beat(least_corner - at, squared);
    if (!any(first) && !any(second)) return;
    const V inverse = one / sqrt(max(squared, V(1e-30f)));
    for (int k = 0; k < 2; ++k) {
      const V side = k == 0 ? inverse : -inverse;
      const V d[3] = {e[1] * side, -(e[0] * side), zero};
      V corner[3] = {zero, zero, zero};
      prism.highest_point(corner, d);
      look(d, corner, upright, e, k == 0 ? first : second);
    }
  });
}

/// The axes D = a + share (b - a) turned from one unit normal to another about an edge of a prism, and a round core,
/// which reaches height |axis . D| + |P D| below its centre along D, where P is the core's `project`. All lengths along
/// D are times its length.
template <class L>
struct Arc {
  using V = typename L::V;
  using M = typename L::M;
  V cosine;               ///< a . b
  V from_a, from_b;       ///< the edge along a and b
  V tilt_a, tilt_b;       ///< the core's axis along them, times its height; 0 without caps
  V part[3];              ///< P D . P W by powers of the share, where W is D turned a right angle towards b
  V rate, middle, least;  ///< |P D|^2 = rate (share - middle)^2 + least

  template <class Core>
  COHORT_LANE Arc(const Core& core, const V* a, const V* b, V turned, const V* from)
      : cosine(turned), from_a(dot3(from, a)), from_b(dot3(from, b)), tilt_a(core.tilt(a)), tilt_b(core.tilt(b)) {
    V pa[3], pb[3], change[3];
    core.project(pa, a);
    core.project(pb, b);
    for (int i = 0; i < 3; ++i) change[i] = pb[i] - pa[i];
    const V aa = dot3(pa, pa), ab = dot3(pa, pb), bb = dot3(pb, pb);
    part[0] = fma(-cosine, aa, ab);
    part[2] = (cosine - V(1.0f)) * (bb - aa);
    part[1] = fma(cosine, bb, -ab) - part[0] - part[2];
    rate = dot3(change, change);
    middle = -dot3(pa, change) / max(rate, V(1e-30f));
    V nearest[3];
    for (int i = 0; i < 3; ++i) nearest[i] = fma(middle, change[i], pa[i]);
    least = dot3(nearest, nearest);
  }
  /// x . D of a vector that has these parts along a and b.
  COHORT_LANE static V along(V at_a, V at_b, V share) { return fma(share, at_b - at_a, at_a); }
  /// x . W and its derivative by the share.
  COHORT_LANE V across_slope(V at_a, V at_b) const { return (cosine - V(1.0f)) * (at_a + at_b); }
  COHORT_LANE V across(V at_a, V at_b, V share) const {
    return fma(share, across_slope(at_a, at_b), fma(-cosine, at_a, at_b));
  }
  /// The overlap's slope towards b, times the length of W, on the side of the axis that `up` tells; depth: the overlap.
  COHORT_LANE V slope(V share, V up, V& depth, V& derivative) const {
    // Along the core's axis itself, a cap's middle is its lowest point.
    const V off = share - middle, squared = fma(rate * off, off, least);
    const M flat = squared <= V(1e-12f) * rate;
    const V reach = sqrt(select(flat, V(1.0f), squared)), inverse = select(flat, V(0.0f), V(1.0f) / reach);
    const V top_a = fma(up, tilt_a, from_a), top_b = fma(up, tilt_b, from_b);
    const V around = fma(share, fma(share, part[2], part[1]), part[0]) * inverse;
    depth = along(top_a, top_b, share) + select(flat, V(0.0f), reach);
    derivative = across_slope(top_a, top_b) +
                 inverse * fma(V(2.0f) * share, part[2], fma(-around, rate * off * inverse, part[1]));
    return across(top_a, top_b, share) + around;
  }
  /// 1 or -1, by the side of the core's axis.
  COHORT_LANE V side(V share) const { return select(along(tilt_a, tilt_b, share) < V(0.0f), V(-1.0f), V(1.0f)); }
};

/// Whether an axis between the normals a and b of a prism's faces that meet in an edge through `from` may be better
/// than one that gives `apart`. The core's lowest points at both tell how deep it is at least anywhere between.
template <class L>
COHORT_LANE typename L::M arc_may_beat(const typename L::V* a, const typename L::V* b, typename L::V cosine,
                                       const typename L::V* from, const typename L::V* low_a,
                                       const typename L::V* low_b, typename L::V apart) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f);
  V over_a[3], over_b[3];
  for (int i = 0; i < 3; ++i) over_a[i] = from[i] - low_a[i], over_b[i] = from[i] - low_b[i];
  const V depth_a = dot3(over_a, a), a_at_b = dot3(over_a, b), depth_b = dot3(over_b, b), b_at_a = dot3(over_b, a);
  // As deep as both points are where that is the same; the normals themselves have been looked at.
  const V fall = depth_a - b_at_a, rise = depth_b - a_at_b;
  const V share = fall / max(fall + rise, V(1e-30f));
  const V least = fma(share, a_at_b - depth_a, depth_a);
  const V squared = fma((cosine - one) * V(2.0f), share * (one - share), one);
  return (least <= zero) | (depth_a <= zero) | (depth_b <= zero) |
         ((apart < zero) & (least * least < apart * apart * squared));
}

/// Where an axis turned from a to b about an edge through `from` is best for a round core. There may be two places, one
/// of them a face's: of those inside some quarter of the arc the least deep counts. Writes the axis d (unit) of the
/// lanes it returns.
template <class L, class Core>
COHORT_LANE typename L::M best_between(const Core& core, const typename L::V* a, const typename L::V* b,
                                       typename L::V cosine, const typename L::V* from, float size, typename L::M lanes,
                                       typename L::V* d) {
  using V = typename L::V;
  using M = typename L::M;
  constexpr int kParts = 4, kSteps = 12;
  const V zero(0.0f), one(1.0f), half(0.5f);
  const Arc<L> arc(core, a, b, cosine, from);
  V low = zero, high = one, at_low = -one, at_high = one, least(3e38f), last = zero, before = zero, derivative;
  M between = lanes & (zero > one);
  for (int part = 0; part <= kParts; ++part) {
    const float where = static_cast<float>(part) / kParts;
    const V share(where);
    V depth;
    const V at = arc.slope(share, arc.side(share), depth, derivative);
    depth = depth / sqrt(max(fma(cosine - one, V(2 * where * (1 - where)), one), V(1e-30f)));
    if (part > 0) {
      const M here = lanes & (last < zero) & (at > zero) & (min(before, depth) < least);
      low = select(here, share - V(1.0f / kParts), low), high = select(here, share, high);
      at_low = select(here, last, at_low), at_high = select(here, at, at_high);
      least = select(here, min(before, depth), least);
      between = between | here;
    }
    last = at, before = depth;
  }
  if constexpr (Core::kCaps) {
    // Across the axis the lowest point jumps from one cap to the other: no place but that of the straight edge, if the
    // slope changes its sign there.
    const V jump = arc.tilt_a / select(arc.tilt_a == arc.tilt_b, one, arc.tilt_a - arc.tilt_b);
    const M inside = between & (jump > low) & (jump < high);
    V depth;
    const V one_side = arc.slope(jump, arc.side(low), depth, derivative);
    const V other_side = arc.slope(jump, arc.side(high), depth, derivative);
    between = between & flip(inside & (one_side <= zero) & (other_side >= zero));
    const M first = inside & (one_side > zero), second = inside & (other_side < zero);
    high = select(first, jump, high), at_high = select(first, one_side, at_high);
    low = select(second, jump, low), at_low = select(second, other_side, at_low);
  }
  if (!any(between)) return between;
  // Newton's method, halving where it would leave the part.
  const V up = arc.side(half * (low + high));
  const V tolerance = (one - cosine * cosine) * V(kArcTolerance * kArcTolerance),
          floor(kArcDepth * kArcDepth * size * size);
  V share = low - at_low * ((high - low) / (at_high - at_low)), next = share;
  M open = between;
  for (int step = 0; step < kSteps && any(open); ++step) {
    share = select(open, next, share);
    V depth;
    const V at = arc.slope(share, up, depth, derivative);
    open = open & (at * at > tolerance * fma(depth, depth, floor));
    const M below = at < zero;
    low = select(below, share, low), high = select(below, high, share);
    next = share - at / derivative;
    next = select((next >= low) & (next <= high), next, half * (low + high));
    open = open & (next != share);
  }
  for (int i = 0; i < 3; ++i) d[i] = fma(share, b[i] - a[i], a[i]);
  const V inverse = one / sqrt(max(dot3(d, d), V(1e-30f)));
  for (int i = 0; i < 3; ++i) d[i] *= inverse;
  return between;
}

/// Axes of a round core that are no normals of faces and across no straight edges.
template <class L, class Core>
COHORT_LANE void round_axes(BestAxis<L>& best, const Prism<L>& prism, const Core& core, const CoreReach<L>& reach,
                            float size, typename L::V enough, typename L::V more, typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f);
  if (!any(near & (best.apart <= enough))) return;
  V low_up[3], low_wall[3][3], d[3];
  core.lowest_point(low_up, prism.up);
  for (int k = 0; k < 3; ++k) {
    const V* from = reach.at_wall[prism.half == 0 || k == 2 ? k : 1 - k];
    for (int i = 0; i < 3; ++i) low_wall[k][i] = prism.half == 0 ? from[i] : -from[i];
  }
  const auto arc = [&](const V* a, const V* b, const V* low_a, const V* low_b, const V* from) {
    const V cosine = dot3(a, b);
    const M left = near & (best.apart <= enough) & arc_may_beat<L>(a, b, cosine, from, low_a, low_b, best.apart);
    if (!any(left)) return;
    const M found = best_between<L>(core, a, b, cosine, from, size, left, d);
    if (any(found)) best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kPointOfCore, more, found);
  };
  const auto beside = [&](int k, V* n) { n[0] = V(prism.wall[k][0]), n[1] = V(prism.wall[k][1]), n[2] = zero; };
  for (int k = 0; k < 3; ++k) {
    // About the top's edge, between the top and the wall under the edge; about the edge between two walls; out of a
    // corner.
    const int last = k == 0 ? 2 : k - 1;
    V wall[3], next[3];
    beside(k, wall);
    beside(last, next);
    arc(prism.up, wall, low_up, low_wall[k], prism.corner[k]);
    // Both are level: where the core is lowest along them is compared with the edge at that height.
    const V* const corner = prism.corner[k];
    const V level[3] = {corner[0], corner[1], zero};
    arc(next, wall, low_wall[last], low_wall[k], level);
    const M inside = near & (best.apart <= enough) & core.inside(corner, zero);
    if (!any(inside)) continue;
    const M found = inside & core.out_of(d, corner);
    best.look(core.lowest(d) - prism.highest(d), d, BestAxis<L>::kCorner, more, found);
  }
}

}  // namespace cohort::sim
