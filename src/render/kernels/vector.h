/// Vectors of three lanes.
#pragma once
#include "sim/kernels/lane/lane.h"

namespace cohort::render {

// Those of registers are found by their arguments; floats have none to be found by.
using sim::abs;
using sim::any;
using sim::clip;
using sim::each_lane;
using sim::exp;
using sim::flip;
using sim::fma;
using sim::get_lane;
using sim::lane_bits;
using sim::lanes_of;
using sim::largest_lane;
using sim::load_anywhere;
using sim::log;
using sim::max;
using sim::min;
using sim::pow;
using sim::select;
using sim::sqrt;
using sim::store;

template <class V>
struct Vector3 {
  V x, y, z;
};

template <class V>
COHORT_LANE Vector3<V> operator+(const Vector3<V>& a, const Vector3<V>& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class V>
COHORT_LANE Vector3<V> operator-(const Vector3<V>& a, const Vector3<V>& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class V>
COHORT_LANE Vector3<V> scaled(const Vector3<V>& a, V s) {
  return {a.x * s, a.y * s, a.z * s};
}
template <class V>
COHORT_LANE V dot(const Vector3<V>& a, const Vector3<V>& b) {
  return fma(a.x, b.x, fma(a.y, b.y, a.z * b.z));
}
template <class V>
COHORT_LANE Vector3<V> cross(const Vector3<V>& a, const Vector3<V>& b) {
  return {fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x))};
}
/// a + s * b
template <class V>
COHORT_LANE Vector3<V> along(const Vector3<V>& a, V s, const Vector3<V>& b) {
  return {fma(s, b.x, a.x), fma(s, b.y, a.y), fma(s, b.z, a.z)};
}
template <class V>
COHORT_LANE Vector3<V> spread(const float* a) {
  return {V(a[0]), V(a[1]), V(a[2])};
}
template <class V>
COHORT_LANE Vector3<V> unit(const Vector3<V>& a) {
  const V square = dot(a, a);
  return scaled(a, V(1.0f) / sqrt(select(square > V(1e-30f), square, V(1.0f))));
}
template <class V, class M>
COHORT_LANE Vector3<V> select(M mask, const Vector3<V>& a, const Vector3<V>& b) {
  return {select(mask, a.x, b.x), select(mask, a.y, b.y), select(mask, a.z, b.z)};
}
/// Row-major r times a.
template <class V>
COHORT_LANE Vector3<V> turned(const float* r, const Vector3<V>& a) {
  return {fma(V(r[0]), a.x, fma(V(r[1]), a.y, V(r[2]) * a.z)), fma(V(r[3]), a.x, fma(V(r[4]), a.y, V(r[5]) * a.z)),
          fma(V(r[6]), a.x, fma(V(r[7]), a.y, V(r[8]) * a.z))};
}
/// The transpose of r times a.
template <class V>
COHORT_LANE Vector3<V> turned_back(const float* r, const Vector3<V>& a) {
  return {fma(V(r[0]), a.x, fma(V(r[3]), a.y, V(r[6]) * a.z)), fma(V(r[1]), a.x, fma(V(r[4]), a.y, V(r[7]) * a.z)),
          fma(V(r[2]), a.x, fma(V(r[5]), a.y, V(r[8]) * a.z))};
}

/// The next whole number below; |a| < 2^22.
template <class V>
COHORT_LANE V floor_lanes(V a) {
  const V near = sim::round(a);
  return select(near > a, near - V(1.0f), near);
}

template <class V>
struct Ray {
  Vector3<V> origin, direction;
};

}  // namespace cohort::render
