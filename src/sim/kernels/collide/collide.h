/// Narrow phases over lanes: two shapes, at most four contacts. Sizes are numbers S of all lanes, or values of each. Everything is relative to the reference point of the
/// second geom's tree. A lane without a contact gets a distance beyond the margin; its other numbers are finite and
/// unused. Geometry as MuJoCo's primitive colliders define it, so that contact points and frames agree.
#pragma once
#include "sim/kernels/lane/pair_kernels.h"
#include "sim/kernels/lane/spatial.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// Distance that no margin reaches, m.
inline constexpr float kFarApart = 1e9f;

template <class V>
struct ContactPoint {
  V dist;       ///< m, negative: depth
  V pos[3];     ///< midpoint
  V normal[3];  ///< from geom 1 to geom 2
  V hint[3];    ///< first tangent, before orthogonalization; zero: MuJoCo's default
};

/// Poses of a pair, in the frame of the second geom's tree.
template <class V>
struct PairPose {
  V pos1[3], pos2[3];
  V rot1[9], rot2[9];  ///< capsules: third column only; spheres: nothing
};

template <class V>
COHORT_LANE void plane_point(ContactPoint<V>& c, const V* plane_pos, const V* normal, const V* centre, V radius) {
  V d[3];
  for (int i = 0; i < 3; ++i) d[i] = centre[i] - plane_pos[i], c.normal[i] = normal[i], c.hint[i] = V(0.0f);
  c.dist = dot3(d, normal) - radius;
  const V down = -fma(c.dist, V(0.5f), radius);
  for (int i = 0; i < 3; ++i) c.pos[i] = fma(normal[i], down, centre[i]);
}

template <class V>
COHORT_LANE void sphere_sphere(ContactPoint<V>& c, const V* p1, V r1, const V* p2, V r2) {
  V d[3];
  for (int i = 0; i < 3; ++i) d[i] = p2[i] - p1[i];
  const V length = sqrt(dot3(d, d));
  const auto apart = length > V(1e-12f);
  const V inverse = V(1.0f) / select(apart, length, V(1.0f));
  c.dist = length - r1 - r2;
  // Centres in one place have no direction: x, as MuJoCo for parallel axes.
  c.normal[0] = select(apart, d[0] * inverse, V(1.0f));
  c.normal[1] = select(apart, d[1] * inverse, V(0.0f));
  c.normal[2] = select(apart, d[2] * inverse, V(0.0f));
  const V out = fma(c.dist, V(0.5f), r1);
  for (int i = 0; i < 3; ++i) c.pos[i] = fma(c.normal[i], out, p1[i]), c.hint[i] = V(0.0f);
}

/// c1 + c2 contacts of two capsules: one at the nearest points, or up to two where the axes are parallel.
template <class V, class S>
COHORT_KERNEL void capsule_capsule(ContactPoint<V>* out, const PairPose<V>& p, const S* size1, const S* size2) {
  const V one(1.0f), minus_one(-1.0f);
  V a1[3], a2[3], d[3];
  for (int i = 0; i < 3; ++i) {
    a1[i] = p.rot1[3 * i + 2] * V(size1[1]);
    a2[i] = p.rot2[3 * i + 2] * V(size2[1]);
    d[i] = p.pos1[i] - p.pos2[i];
  }
  const V ma = dot3(a1, a1), mb = -dot3(a1, a2), mc = dot3(a2, a2);
  const V u = -dot3(a1, d), v = dot3(a2, d);
  const V det = fma(ma, mc, -(mb * mb));
  // Single precision cannot tell parallel from nearly so below this angle (about 5e-4 rad).
  const auto skew = abs(det) > V(3e-7f) * (ma * mc);
  const V safe = select(skew, det, one);
  V x1 = fma(mc, u, -(mb * v)) / safe, x2 = fma(ma, v, -(mb * u)) / safe;
  const auto high1 = x1 > one, low1 = x1 < minus_one;
  x2 = select(high1, (v - mb) / mc, select(low1, (v + mb) / mc, x2));
  x1 = clip(x1, minus_one, one);
  const auto high2 = x2 > one, low2 = x2 < minus_one;
  x1 = select(high2, clip((u - mb) / ma, minus_one, one), select(low2, clip((u + mb) / ma, minus_one, one), x1));
  x2 = clip(x2, minus_one, one);
  V p1[3], p2[3];
  const auto place = [&](ContactPoint<V>& c, V s1, V s2) {
    for (int i = 0; i < 3; ++i) p1[i] = fma(a1[i], s1, p.pos1[i]), p2[i] = fma(a2[i], s2, p.pos2[i]);
    sphere_sphere(c, p1, V(size1[0]), p2, V(size2[0]));
  };
  place(out[0], x1, x2);
  out[1] = out[0];
  out[1].dist = V(kFarApart);
  if (!any(flip(skew))) return;
  // Parallel: the two ends of the part that both have in common, or the two nearest ends.
  const V h1(size1[1]), h2(size2[1]);
  const V offset = -dot3(d, a1) / h1;  // of the second's centre along the first
  const V same = select(mb > V(0.0f), minus_one, one);
  const V lower = max(-h1, offset - h2), upper = min(h1, offset + h2);
  const auto apart = lower > upper;
  for (int k = 0; k < 2; ++k) {
    const V s1 = select(apart, clip(offset, -h1, h1), k == 0 ? lower : upper);
    const V s2 = clip(same * (s1 - offset), -h2, h2);
    ContactPoint<V> c;
    place(c, s1 / h1, s2 / h2);
    out[k].dist = select(skew, out[k].dist, c.dist);
    for (int i = 0; i < 3; ++i) {
      out[k].pos[i] = select(skew, out[k].pos[i], c.pos[i]);
      out[k].normal[i] = select(skew, out[k].normal[i], c.normal[i]);
    }
  }
  // Ends that face each other meet twice, once as the end of each, as MuJoCo has it.
  out[1].dist = select(skew, V(kFarApart), out[1].dist);
}

/// The corners of a box below its centre, at most four, in MuJoCo's order.
template <class V, class S>
COHORT_KERNEL void plane_box(ContactPoint<V>* out, const PairPose<V>& p, const S* size, V reach) {
  V normal[3], d[3];
  for (int i = 0; i < 3; ++i) normal[i] = p.rot1[3 * i + 2], d[i] = p.pos2[i] - p.pos1[i];
  const V centre = dot3(d, normal);
  V count(0.0f);
  for (int k = 0; k < 4; ++k) {
    out[k].dist = V(kFarApart);
    for (int i = 0; i < 3; ++i) out[k].pos[i] = out[k].hint[i] = V(0.0f), out[k].normal[i] = normal[i];
  }
  for (int corner = 0; corner < 8; ++corner) {
    const S local[3] = {corner & 1 ? size[0] : -size[0], corner & 2 ? size[1] : -size[1],
                        corner & 4 ? size[2] : -size[2]};
    V x[3];
    rotate(x, p.rot2, local);
    const V below = dot3(normal, x);
    const V dist = centre + below;
    const auto good = (dist <= reach) & (below <= V(0.0f));
    for (int k = 0; k < 4; ++k) {
      const auto here = good & (count == V(static_cast<float>(k)));
      out[k].dist = select(here, dist, out[k].dist);
      for (int i = 0; i < 3; ++i) {
        out[k].pos[i] = select(here, fma(normal[i], V(-0.5f) * dist, x[i] + p.pos2[i]), out[k].pos[i]);
      }
    }
    count = select(good, count + V(1.0f), count);
  }
}

/// Frame of a contact by rows: normal, first and second tangent.
template <class V>
COHORT_LANE void contact_frame(V* frame, const ContactPoint<V>& c) {
  const V* n = c.normal;
  const auto plain = dot3(c.hint, c.hint) < V(0.25f);
  const auto use_y = abs(n[1]) < V(0.5f);
  const V y = select(use_y, V(1.0f), V(0.0f));
  V t[3] = {select(plain, V(0.0f), c.hint[0]), select(plain, y, c.hint[1]), select(plain, V(1.0f) - y, c.hint[2])};
  V along = dot3(n, t);
  for (int i = 0; i < 3; ++i) t[i] = fma(-along, n[i], t[i]);
  V length = sqrt(dot3(t, t));
  // A hint along the normal leaves nothing: any tangent will do.
  const auto degenerate = length < V(1e-6f);
  if (any(degenerate)) {
    V s[3] = {V(0.0f), y, V(1.0f) - y};
    along = dot3(n, s);
    for (int i = 0; i < 3; ++i) t[i] = select(degenerate, fma(-along, n[i], s[i]), t[i]);
    length = sqrt(dot3(t, t));
  }
  const V inverse = V(1.0f) / length;
  for (int i = 0; i < 3; ++i) frame[i] = n[i], frame[3 + i] = t[i] * inverse;
  cross(frame + 6, frame, frame + 3);
}

}  // namespace cohort::sim
