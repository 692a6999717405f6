/// Where a path between two points touches a sphere or a cylinder (the geometry of MuJoCo's documentation, "Tendons":
/// geoms that a tendon wraps around). Everything is in the geom's frame.
#pragma once
#include "sim/kernels/lane/model_view.h"
#include "sim/kernels/lane/spatial.h"

namespace cohort::sim {

template <class V>
COHORT_LANE V dot2(const V* a, const V* b) {
  return fma(a[1], b[1], a[0] * b[0]);
}
/// a[0] b[1] - a[1] b[0]
template <class V>
COHORT_LANE V cross2(const V* a, const V* b) {
  return fma(a[0], b[1], -(a[1] * b[0]));
}
/// Scales to length 1 and returns the length before; (1, 0, ...) for a vector without length.
template <int N, class V>
COHORT_LANE V normalize(V* a) {
  V squared = a[0] * a[0];
  for (int i = 1; i < N; ++i) squared = fma(a[i], a[i], squared);
  const auto good = squared > V(1e-30f);
  const V length = sqrt(squared), inverse = V(1.0f) / select(good, length, V(1.0f));
  for (int i = 0; i < N; ++i) a[i] = select(good, a[i] * inverse, V(i == 0 ? 1.0f : 0.0f));
  return length;
}

/// Where the segment from a to b meets the one from c to d.
template <class V>
COHORT_LANE auto segments_meet(const V* a, const V* b, const V* c, const V* d) {
  const V zero(0.0f), one(1.0f);
  const V p[2] = {b[0] - a[0], b[1] - a[1]}, q[2] = {d[0] - c[0], d[1] - c[1]}, r[2] = {a[0] - c[0], a[1] - c[1]};
  const V det = cross2(p, q);
  const auto skew = abs(det) > V(1e-15f);
  const V inverse = one / select(skew, det, one);
  const V s = cross2(q, r) * inverse, t = cross2(p, r) * inverse;
  return skew & (s >= zero) & (s <= one) & (t >= zero) & (t <= one);
}

/// An angle below which rounding decides on which side of an arc its other end lies.
inline constexpr float kLeastArc = 3e-6f;

/// The angle that a direction sweeps around the origin from p to q, in (-pi, pi].
template <class V>
COHORT_LANE V winding(const V* p, const V* q) {
  return atan2(cross2(p, q), dot2(p, q));
}

/// A path from end[0..1] to end[2..3] outside a circle: the two points where it touches, the arc's length. `side`: a
/// point on the circle, or null; the path passes the centre on the side on which the one over that point does, and
/// without it on the shorter one. The result says where the circle is touched at all.
template <class V>
COHORT_LANE auto wrap_outside(const V* end, const V* side, float radius, V* point, V& length) {
  const V zero(0.0f), one(1.0f), r(radius), rr(radius * radius);
  const V squared0 = dot2(end, end), squared1 = dot2(end + 2, end + 2);
  const V along[2] = {end[2] - end[0], end[3] - end[1]};
  const V dd = dot2(along, along);
  auto on = (squared0 >= rr) & (squared1 >= rr) & (dd >= V(1e-15f));
  const V a = clip(-dot2(along, end) / select(dd >= V(1e-15f), dd, one), zero, one);
  const V nearest[2] = {fma(a, along[0], end[0]), fma(a, along[1], end[1])};
  auto passes = dot2(nearest, nearest) > rr;
  V swept = zero;
  if (side) {
    // The straight segment sweeps the same angle, or one that differs by a whole turn.
    swept = winding(end, side) + winding(side, end + 2);
    passes = passes & (abs(swept - winding(end, end + 2)) < V(3.1415926536f));
  }
  on = on & flip(passes);
  const V root[2] = {sqrt(max(squared0 - rr, zero)), sqrt(max(squared1 - rr, zero))};
  const V inverse[2] = {one / max(squared0, V(1e-30f)), one / max(squared1, V(1e-30f))};
  V touch[2][4], good[2];
  for (int k = 0; k < 2; ++k) {
    for (int e = 0; e < 2; ++e) {
      const V turn = (k == e ? r : -r) * root[e];
      touch[k][2 * e] = fma(end[2 * e], rr, turn * end[2 * e + 1]) * inverse[e];
      touch[k][2 * e + 1] = fma(end[2 * e + 1], rr, -(turn * end[2 * e])) * inverse[e];
    }
    const V apart[2] = {touch[k][0] - touch[k][2], touch[k][1] - touch[k][3]};
    good[k] = -dot2(apart, apart);
    const auto crossed = segments_meet(end, touch[k], end + 2, touch[k] + 2);
    good[k] = select(crossed, V(-10000.0f), good[k]);
  }
  auto first = good[0] > good[1];
  if (side) first = flip(swept > zero);
  for (int i = 0; i < 4; ++i) point[i] = select(first, touch[0][i], touch[1][i]);
  on = on & flip(segments_meet(end, point, end + 2, point + 2));
  if (side) {
    // What the path sweeps, less its straight ends: an arc may come near a whole turn.
    length = r * abs(swept - winding(end, point) - winding(point + 2, end + 2));
    return on;
  }
  // The arc from the first to the second point, turning as the chosen solution does.
  const V sine = cross2(point, point + 2), cosine = dot2(point, point + 2);
  const V angle = atan2(abs(sine), cosine);
  const V turning = select(first, -sine, sine);
  const auto negligible = (abs(sine) < V(kLeastArc) * rr) & (cosine > zero);
  length = r * select((turning < zero) & flip(negligible), V(6.2831853072f) - angle, angle);
  return on;
}

/// asin of 0 <= x <= 1.
template <class V>
COHORT_LANE V arcsine(V x) {
  return atan2(x, sqrt(max((V(1.0f) - x) * (V(1.0f) + x), V(0.0f))));
}

/// A path from end[0..1] to end[2..3] that touches a circle from within, in one point: where the segment to either end
/// makes the same angle with the circle. With r = A l0 = B l1 and the angle G between the ends that is
///   asin(A sin x) + asin(B sin x) - 2 x + G = 0,
/// concave and falling in x, so that Newton's method from pi / 2 comes down to the root without passing it.
template <class V>
COHORT_LANE auto wrap_inside(const V* end, float radius, V* point) {
  const V zero(0.0f), one(1.0f), r(radius), half_pi(1.5707963268f);
  V from[2] = {end[0], end[1]}, to[2] = {end[2], end[3]};
  const V length0 = normalize<2>(from), length1 = normalize<2>(to);
  const V along[2] = {end[2] - end[0], end[3] - end[1]};
  const V dd = dot2(along, along);
  const auto apart = dd > V(1e-15f);
  const V a = -dot2(along, end) / select(apart, dd, one);
  const V nearest[2] = {fma(a, along[0], end[0]), fma(a, along[1], end[1])};
  const auto cut = apart & (a > zero) & (a < one) & (dot2(nearest, nearest) <= r * r);
  const auto on = (length0 > r) & (length1 > r) & flip(cut);
  const V A = min(r / max(length0, V(1e-15f)), one), B = min(r / max(length1, V(1e-15f)), one);
  const V turn = cross2(from, to);
  const V G = atan2(abs(turn), dot2(from, to));
  V x = half_pi;
  V f = arcsine(A) + arcsine(B) - V(2.0f) * half_pi + G;
  // No root: the middle between the ends.
  const auto none = f > zero;
  auto open = on & flip(none);
  for (int i = 0; i < 20 && any(open); ++i) {
    V s, c;
    sincos(x, s, c);
    const V As = A * s, Bs = B * s;
    f = arcsine(As) + arcsine(Bs) - V(2.0f) * x + G;
    const V slope = A * c / sqrt(max(one - As * As, V(1e-12f))) + B * c / sqrt(max(one - Bs * Bs, V(1e-12f))) - V(2.0f);
    open = open & (abs(f) > V(5e-7f)) & (slope < V(-1e-6f));
    x = select(open, clip(x - f / select(slope < V(-1e-6f), slope, V(-1.0f)), zero, half_pi), x);
  }
  V s, c;
  sincos(x, s, c);
  const auto left = turn > zero;
  const V angle = x - arcsine(select(left, A, B) * s);
  sincos(angle, s, c);
  V base[2], middle[2] = {end[0] + end[2], end[1] + end[3]};
  normalize<2>(middle);
  for (int i = 0; i < 2; ++i) base[i] = select(left, from[i], to[i]);
  point[0] = r * select(none, middle[0], fma(c, base[0], -(s * base[1])));
  point[1] = r * select(none, middle[1], fma(s, base[0], c * base[1]));
  point[2] = point[0];
  point[3] = point[1];
  return on;
}

/// The path from p0 to p1 around a sphere, or around a cylinder along z: where it begins and ceases to touch, and the
/// length between. side_kind: SegmentSide. The result says where it touches at all; elsewhere the points are finite
/// and unused.
template <class V>
COHORT_KERNEL auto wrap_around(int shape, int side_kind, float radius, const V* p0, const V* p1, const V* side,
                               V* touch0, V* touch1, V& length) {
  const V zero(0.0f), one(1.0f), r(radius);
  V axis[2][3] = {{one, zero, zero}, {zero, one, zero}};
  if (shape == kAroundSphere) {
    // The plane of both points and the centre; where they are in line with it, one along a diagonal of the axes.
    for (int i = 0; i < 3; ++i) axis[0][i] = p0[i];
    normalize<3>(axis[0]);
    V normal[3], diagonal[3], other[3];
    cross(normal, p0, p1);
    const auto in_line = dot3(normal, normal) < V(1e-14f) * (dot3(p0, p0) * dot3(p1, p1));
    const V size[3] = {abs(axis[0][0]), abs(axis[0][1]), abs(axis[0][2])};
    const auto z = (size[2] > size[0]) & (size[2] > size[1]), y = flip(z) & (size[1] > size[0]) & (size[1] > size[2]);
    diagonal[0] = select(y | z, one, zero);
    diagonal[1] = select(y, zero, one);
    diagonal[2] = select(z, zero, one);
    cross(other, axis[0], diagonal);
    for (int i = 0; i < 3; ++i) normal[i] = select(in_line, other[i], normal[i]);
    normalize<3>(normal);
    cross(axis[1], normal, axis[0]);
    normalize<3>(axis[1]);
  }
  const V end[4] = {dot3(p0, axis[0]), dot3(p0, axis[1]), dot3(p1, axis[0]), dot3(p1, axis[1])};
  V point[4];
  length = zero;
  auto on = zero != zero;
  if (side_kind == kSideNone) {
    on = wrap_outside(end, static_cast<const V*>(nullptr), radius, point, length);
  } else {
    V flat[2] = {dot3(side, axis[0]), dot3(side, axis[1])};
    normalize<2>(flat);
    V inner[4];
    auto inside = dot3(side, side) < r * r;
    if (side_kind == kSideOutside) inside = zero != zero;
    if (side_kind == kSideInside) inside = zero == zero;
    if (side_kind != kSideInside) on = flip(inside) & wrap_outside(end, flat, radius, point, length);
    if (side_kind != kSideOutside) {
      on = on | (inside & wrap_inside(end, radius, inner));
      const V kept = side_kind == kSideInside ? zero : length;
      length = select(inside, zero, kept);
      for (int i = 0; i < 4; ++i) point[i] = side_kind == kSideInside ? inner[i] : select(inside, inner[i], point[i]);
    }
  }
  on = on & (dot3(p0, p0) > V(1e-30f)) & (dot3(p1, p1) > V(1e-30f));
  for (int i = 0; i < 3; ++i) {
    touch0[i] = fma(axis[1][i], point[1], axis[0][i] * point[0]);
    touch1[i] = fma(axis[1][i], point[3], axis[0][i] * point[2]);
  }
  if (shape == kAroundCylinder) {
    // The height rises evenly along the path.
    const V to[2] = {p0[0] - touch0[0], p0[1] - touch0[1]}, off[2] = {p1[0] - touch1[0], p1[1] - touch1[1]};
    const V before = sqrt(dot2(to, to)), after = sqrt(dot2(off, off));
    const V slope = (p1[2] - p0[2]) / max(before + length + after, V(1e-15f));
    touch0[2] = fma(slope, before, p0[2]);
    touch1[2] = fma(slope, before + length, p0[2]);
    const V height = touch1[2] - touch0[2];
    length = sqrt(fma(length, length, height * height));
  }
  return on;
}

}  // namespace cohort::sim
