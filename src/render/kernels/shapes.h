/// Where a ray enters a shape, in the shape's own frame. Only entries count, as OpenGL culls what faces away; a shape
/// that the ray's origin lies in is not met. t counts the ray's direction, of any length.
#pragma once
#include "render/kernels/records.h"
#include "render/kernels/vector.h"

namespace cohort::render {

/// No shape is so far.
inline constexpr float kMiss = 3e38f;

/// t: kMiss where there is none. part: the side of a box (axis * 2, + 1 for the positive one), the caps of a cylinder
/// (1), a mesh's triangle.
template <class V>
struct Entry {
  V t, part, u, v;
};

/// Away from zero, so that it can be divided by.
template <class V>
COHORT_LANE V not_zero(V a) {
  const V small(1e-18f);
  return select(abs(a) < small, select(a < V(0.0f), -small, small), a);
}

/// A sphere with radius 1, of a ray scaled by the radii: the entry is half a chord before the point nearest to the
/// centre. Differences of squares of large numbers do not arise (Haines, Gunther, Akenine-Moeller, "Precision
/// improvements for ray/sphere intersection", Ray Tracing Gems, 2019).
template <class V>
COHORT_LANE Entry<V> enter_ellipsoid(const Ray<V>& r, const float* radii) {
  const Vector3<V> inverse{V(1.0f / radii[0]), V(1.0f / radii[1]), V(1.0f / radii[2])};
  const Vector3<V> o{r.origin.x * inverse.x, r.origin.y * inverse.y, r.origin.z * inverse.z};
  const Vector3<V> d{r.direction.x * inverse.x, r.direction.y * inverse.y, r.direction.z * inverse.z};
  const V a = dot(d, d), middle = -(dot(o, d) / a);
  const Vector3<V> closest = along(o, middle, d);
  const V rest = V(1.0f) - dot(closest, closest);
  const V half = sqrt(max(rest, V(0.0f)) / a);
  return {select(rest >= V(0.0f), middle - half, V(kMiss)), V(0.0f), V(0.0f), V(0.0f)};
}

/// Of the cylinder without ends around z: the two t at which the ray passes it; rest < 0: it misses.
template <class V>
struct Passage {
  V in, out, rest;
};
template <class V>
COHORT_LANE Passage<V> pass_tube(const Ray<V>& r, float radius) {
  const V a = max(fma(r.direction.x, r.direction.x, r.direction.y * r.direction.y), V(1e-12f));
  const V middle = -(fma(r.origin.x, r.direction.x, r.origin.y * r.direction.y) / a);
  const V x = fma(middle, r.direction.x, r.origin.x), y = fma(middle, r.direction.y, r.origin.y);
  const V rest = V(radius * radius) - fma(x, x, y * y);
  const V half = sqrt(max(rest, V(0.0f)) / a);
  return {middle - half, middle + half, rest};
}

/// size: radius and half length of the cylindrical part. A ray that enters the tube beyond an end meets the ball there,
/// or nothing.
template <class V>
COHORT_LANE Entry<V> enter_capsule(const Ray<V>& r, float radius, float half) {
  const Passage<V> tube = pass_tube(r, radius);
  const V z = fma(tube.in, r.direction.z, r.origin.z);
  const V end = select(z > V(0.0f), V(half), V(-half));
  const float radii[3] = {radius, radius, radius};
  const Ray<V> moved{{r.origin.x, r.origin.y, r.origin.z - end}, r.direction};
  const Entry<V> ball = enter_ellipsoid(moved, radii);
  const V t = select(abs(z) <= V(half), tube.in, ball.t);
  return {select(tube.rest >= V(0.0f), t, V(kMiss)), V(0.0f), V(0.0f), V(0.0f)};
}

template <class V>
COHORT_LANE Entry<V> enter_cylinder(const Ray<V>& r, float radius, float half) {
  const Passage<V> tube = pass_tube(r, radius);
  const V inverse = V(1.0f) / not_zero(r.direction.z);
  const V a = (V(-half) - r.origin.z) * inverse, b = (V(half) - r.origin.z) * inverse;
  const V in = min(a, b), out = max(a, b);
  const V enter = max(tube.in, in);
  const auto met = (tube.rest >= V(0.0f)) & (enter <= min(tube.out, out));
  return {select(met, enter, V(kMiss)), select(in > tube.in, V(1.0f), V(0.0f)), V(0.0f), V(0.0f)};
}

/// By slabs (Kay and Kajiya 1986).
template <class V>
COHORT_LANE Entry<V> enter_box(const Ray<V>& r, const float* half) {
  const Vector3<V> inverse{V(1.0f) / not_zero(r.direction.x), V(1.0f) / not_zero(r.direction.y),
                           V(1.0f) / not_zero(r.direction.z)};
  const V ax = (V(-half[0]) - r.origin.x) * inverse.x, bx = (V(half[0]) - r.origin.x) * inverse.x;
  const V ay = (V(-half[1]) - r.origin.y) * inverse.y, by = (V(half[1]) - r.origin.y) * inverse.y;
  const V az = (V(-half[2]) - r.origin.z) * inverse.z, bz = (V(half[2]) - r.origin.z) * inverse.z;
  const V x = min(ax, bx), y = min(ay, by), z = min(az, bz);
  const V out = min(min(max(ax, bx), max(ay, by)), max(az, bz));
  const V in = max(max(x, y), z);
  const V zero(0.0f);
  V part = select(r.direction.x < zero, V(1.0f), V(0.0f));
  part = select(y > x, select(r.direction.y < zero, V(3.0f), V(2.0f)), part);
  part = select(z > max(x, y), select(r.direction.z < zero, V(5.0f), V(4.0f)), part);
  return {select(in <= out, in, V(kMiss)), part, zero, zero};
}

/// Half extents x and y; 0: without end. From either side: which one is seen is the caller's to know.
template <class V>
COHORT_LANE Entry<V> enter_plane(const Ray<V>& r, const float* half) {
  const V t = -r.origin.z / not_zero(r.direction.z);
  const V x = abs(fma(t, r.direction.x, r.origin.x)), y = abs(fma(t, r.direction.y, r.origin.y));
  const V none(kMiss);
  V met = select(abs(r.direction.z) > V(1e-18f), t, none);
  if (half[0] > 0) met = select(x <= V(half[0]), met, none);
  if (half[1] > 0) met = select(y <= V(half[1]), met, none);
  return {met, V(0.0f), V(0.0f), V(0.0f)};
}

}  // namespace cohort::render
