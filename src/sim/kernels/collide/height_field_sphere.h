/// A sphere on a height field, over lanes.
#pragma once
#include "sim/kernels/collide/convex/queued.h"
#include "sim/kernels/collide/height_field.h"
#if defined(COHORT_SEARCHES_IN_PLACE)
#include "sim/kernels/collide/convex/sphere_prism.h"
#endif

namespace cohort::sim {

/// The point of a triangle nearest to the origin (Ericson 2005, section 5.1.5).
template <class V>
COHORT_LANE void nearest_point(V* out, const V* a, const V* b, const V* c) {
  const V zero(0.0f), one(1.0f);
  V ab[3], ac[3];
  for (int i = 0; i < 3; ++i) ab[i] = b[i] - a[i], ac[i] = c[i] - a[i];
  const V d1 = -dot3(ab, a), d2 = -dot3(ac, a), d3 = -dot3(ab, b), d4 = -dot3(ac, b), d5 = -dot3(ab, c),
          d6 = -dot3(ac, c);
  const V vc = fma(d1, d4, -(d3 * d2)), vb = fma(d5, d2, -(d1 * d6)), va = fma(d3, d6, -(d5 * d4));
  const V to_b = d4 - d3, to_c = d5 - d6;
  // The shares of b and c: inside, on an edge, at a corner. What is decided first in a chain comes last here.
  const V inverse = one / (va + vb + vc);
  V v = vb * inverse, w = vc * inverse;
  const auto on_bc = (va <= zero) & (to_b >= zero) & (to_c >= zero);
  const V along_bc = to_b / (to_b + to_c);
  v = select(on_bc, one - along_bc, v), w = select(on_bc, along_bc, w);
  const auto on_ac = (vb <= zero) & (d2 >= zero) & (d6 <= zero);
  v = select(on_ac, zero, v), w = select(on_ac, d2 / (d2 - d6), w);
  const auto at_c = (d6 >= zero) & (d5 <= d6);
  v = select(at_c, zero, v), w = select(at_c, one, w);
  const auto on_ab = (vc <= zero) & (d1 >= zero) & (d3 <= zero);
  v = select(on_ab, d1 / (d1 - d3), v), w = select(on_ab, zero, w);
  const auto at_b = (d3 >= zero) & (d4 <= d3);
  v = select(at_b, one, v), w = select(at_b, zero, w);
  const auto at_a = (d1 <= zero) & (d2 <= zero);
  v = select(at_a, zero, v), w = select(at_a, zero, w);
  for (int i = 0; i < 3; ++i) out[i] = fma(v, ab[i], fma(w, ac[i], a[i]));
}

/// A prism and the origin, where the top is not the nearest part: out through the nearest face of a prism that the
/// origin is in, or towards the wall beside it. Changes on (the nearest point), away (unit, from it) and apart where it
/// knows them; takes lanes that are farther than `around` out of met.
template <class L>
COHORT_KERNEL void beside_or_inside(const Prism<L>& prism, typename L::V around, typename L::M& met,
                                    typename L::M& known, typename L::V* on, typename L::V* away,
                                    typename L::V& apart) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f), one(1.0f);
  // Beyond the top, the bottom, and the walls.
  V most = -prism.top_at, out[3] = {prism.up[0], prism.up[1], prism.up[2]}, outside(-1e30f);
  const auto take = [&](V beyond, V nx, V ny, V nz) {
    const auto more = beyond > most;
    most = select(more, beyond, most);
    out[0] = select(more, nx, out[0]), out[1] = select(more, ny, out[1]), out[2] = select(more, nz, out[2]);
  };
  for (int k = 0; k < 3; ++k) {
    const V beyond = -prism.wall_at[k];
    outside = max(outside, beyond);
    take(beyond, V(prism.wall[k][0]), V(prism.wall[k][1]), zero);
  }
  take(prism.floor, zero, zero, V(-1.0f));
  met = met & (known | (most <= around));
  const M inside = flip(known) & (most <= zero);
  // The nearest point of the walls is at the origin's own height, where the wall is as high.
  const V(*corner)[3] = prism.corner;
  const V flat[3][3] = {
      {corner[0][0], corner[0][1], zero}, {corner[1][0], corner[1][1], zero}, {corner[2][0], corner[2][1], zero}};
  V wall[3];
  nearest_point(wall, flat[0], flat[1], flat[2]);
  const V far = sqrt(fma(wall[0], wall[0], wall[1] * wall[1]));
  const V height =
      corner[0][2] - fma(prism.up[0], wall[0] - corner[0][0], prism.up[1] * (wall[1] - corner[0][1])) / prism.up[2];
  const M beside =
      flip(known | inside) & (outside > zero) & (far > V(1e-9f)) & (height >= zero) & (prism.floor <= zero);
  const V inverse = V(-1.0f) / select(beside, far, one);
  for (int i = 0; i < 3; ++i) {
    away[i] = select(inside, out[i], select(beside, wall[i] * inverse, away[i]));
    on[i] = select(inside, -(most * out[i]), select(beside, wall[i], on[i]));
  }
  apart = select(inside, most, select(beside, far, apart));
  known = known | inside | beside;
}

/// Contacts of the spheres in `near`: one for each of the field's prisms that a lane's sphere meets; of more than
/// kMaxPairContacts those that spread.h chooses. A sphere that is neither nearest to a prism's top, nor in it, nor beside
/// one of its walls
/// (below the field, or over the edge of a higher wall) is left to sphere_and_prism, alone.
template <class L>
COHORT_KERNEL int height_field_sphere(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                      const PairPose<typename L::V>& pose, typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  constexpr int kLanes = L::kWidth;
  const HeightFieldRecord& h = m.height_field[m.geom[p.geom1].data];
  const float radius = m.geom[p.geom2].size[0], reach = p.margin + p.gap, around = radius + reach, bottom = h.size[3];
  V d[3], s[3];
  for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i];
  rotate_back(s, pose.rot1, d);
  const V r(radius);
  const FieldExtent<V> extent{{-r, -r, -r}, {r, r, r}, -r, r};
  LaneContacts<L> found(pose, reach, radius);
  each_prism<L>(m, h, s, extent, reach, near, [&](const Prism<L>& prism, M met) {
    // Not above the plane of the triangle by more than the radius.
    met = met & (-prism.top_at <= V(around));
    if (!any(met)) return;
    V on[3];
    nearest_point(on, prism.corner[0], prism.corner[1], prism.corner[2]);
    // From the nearest point to the centre is -on. It is the prism's nearest when the bottom does not reach nearer.
    M plain = on[2] < V(0.0f);
    const V low = prism.floor - on[2];
    for (const V* k : prism.corner) {
      plain = plain & (fma(k[0] - on[0], on[0], fma(k[1] - on[1], on[1], low * on[2])) >= V(0.0f));
    }
    V apart = sqrt(dot3(on, on)), away[3];
    for (int i = 0; i < 3; ++i) away[i] = on[i] * (V(-1.0f) / apart);
    M known = plain;
    if (any(met & flip(plain))) beside_or_inside<L>(prism, V(around), met, known, on, away, apart);
    const M touches = met & known & (apart <= V(around));
    const unsigned hit = lane_bits(touches), odd = lane_bits(met & flip(known));
    if (hit != 0) {
      V point[3];
      // Midway between the surfaces, about the sphere's centre.
      for (int i = 0; i < 3; ++i) point[i] = V(0.5f) * fma(-away[i], r, on[i]);
      found.keep_all(hit, apart - r, point, away, pose.rot1, pose.pos2);
    }
    if (odd == 0) return;
    alignas(64) float centre[3][kLanes], points[9][kLanes], turn[9][kLanes], place[3][kLanes];
    for (int i = 0; i < 3; ++i) {
      store(centre[i], s[i]), store(place[i], pose.pos1[i]);
      for (int k = 0; k < 3; ++k) store(points[3 * k + i], prism.corner[k][i] + s[i]);
    }
    for (int i = 0; i < 9; ++i) store(turn[i], pose.rot1[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((odd >> lane & 1u) == 0) continue;
      float corners[18], in_field[7];
      for (int k = 0; k < 9; ++k) corners[9 + k] = points[k][lane], corners[k] = k % 3 == 2 ? -bottom : points[k][lane];
      const float from[3] = {centre[0][lane], centre[1][lane], centre[2][lane]};
#if defined(COHORT_SEARCHES_IN_PLACE)
      if (!collide::near_prism(corners, from, radius, reach, in_field)) continue;
#else
      if (!sphere_and_prism(corners, from, radius, reach, in_field)) continue;
#endif
      found.keep_one(lane, in_field, turn, place);
    }
  });
  return found.write(out);
}

}  // namespace cohort::sim
