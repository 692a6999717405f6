/// Eight floats: AVX2 with FMA. Compiler vector extensions behind a small wrapper; only sqrt, fma and any() are
/// intrinsics.
#pragma once
#include <immintrin.h>

#include "sim/kernels/lane.h"

namespace cohort::sim {

struct Mask8 {
  typedef int Native __attribute__((vector_size(32)));
  Native v;
};
COHORT_LANE Mask8 operator&(Mask8 a, Mask8 b) {
  return {a.v & b.v};
}
COHORT_LANE Mask8 operator|(Mask8 a, Mask8 b) {
  return {a.v | b.v};
}
COHORT_LANE Mask8 flip(Mask8 a) {
  return {~a.v};
}
COHORT_LANE bool any(Mask8 m) {
  return _mm256_movemask_ps(reinterpret_cast<__m256>(m.v)) != 0;
}
COHORT_LANE unsigned lane_bits(Mask8 m) {
  return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(m.v)));
}

struct Float8 {
  typedef float Native __attribute__((vector_size(32)));
  Native v;
  Float8() = default;
  COHORT_LANE Float8(Native native) : v(native) {}
  COHORT_LANE Float8(float value) : v(reinterpret_cast<Native>(_mm256_set1_ps(value))) {}
};
COHORT_LANE Float8 operator+(Float8 a, Float8 b) {
  return a.v + b.v;
}
COHORT_LANE Float8 operator-(Float8 a, Float8 b) {
  return a.v - b.v;
}
COHORT_LANE Float8 operator*(Float8 a, Float8 b) {
  return a.v * b.v;
}
COHORT_LANE Float8 operator/(Float8 a, Float8 b) {
  return a.v / b.v;
}
COHORT_LANE Float8 operator-(Float8 a) {
  return -a.v;
}
COHORT_LANE Float8& operator+=(Float8& a, Float8 b) {
  return a = a + b;
}
COHORT_LANE Float8& operator-=(Float8& a, Float8 b) {
  return a = a - b;
}
COHORT_LANE Float8& operator*=(Float8& a, Float8 b) {
  return a = a * b;
}
COHORT_LANE Mask8 operator<(Float8 a, Float8 b) {
  return {a.v < b.v};
}
COHORT_LANE Mask8 operator>(Float8 a, Float8 b) {
  return {a.v > b.v};
}
COHORT_LANE Mask8 operator<=(Float8 a, Float8 b) {
  return {a.v <= b.v};
}
COHORT_LANE Mask8 operator>=(Float8 a, Float8 b) {
  return {a.v >= b.v};
}
COHORT_LANE Mask8 operator!=(Float8 a, Float8 b) {
  return {a.v != b.v};
}
COHORT_LANE Mask8 operator==(Float8 a, Float8 b) {
  return {a.v == b.v};
}
COHORT_LANE Float8 select(Mask8 m, Float8 a, Float8 b) {
  return m.v ? a.v : b.v;
}
COHORT_LANE Float8 fma(Float8 a, Float8 b, Float8 c) {
  return reinterpret_cast<Float8::Native>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(a.v), reinterpret_cast<__m256>(b.v), reinterpret_cast<__m256>(c.v)));
}
COHORT_LANE Float8 sqrt(Float8 a) {
  return reinterpret_cast<Float8::Native>(_mm256_sqrt_ps(reinterpret_cast<__m256>(a.v)));
}
COHORT_LANE Float8 load_anywhere(const float* p, Float8*) {
  return reinterpret_cast<Float8::Native>(_mm256_loadu_ps(p));
}
COHORT_LANE Float8 load(const float* p, Float8*) {
  return reinterpret_cast<Float8::Native>(_mm256_load_ps(p));
}
COHORT_LANE void store(float* p, Float8 a) {
  _mm256_store_ps(p, reinterpret_cast<__m256>(a.v));
}
COHORT_LANE Float8 scale_exponent(Float8 x, Float8 n) {
  const Mask8::Native bits = (__builtin_convertvector(n.v, Mask8::Native) + 127) << 23;
  return x.v * reinterpret_cast<Float8::Native>(bits);
}
COHORT_LANE Float8 split_exponent(Float8 x, Float8& mantissa) {
  const Mask8::Native bits = reinterpret_cast<Mask8::Native>(x.v);
  mantissa = reinterpret_cast<Float8::Native>((bits & 0x007fffff) | 0x3f800000);
  return __builtin_convertvector((bits >> 23) - 127, Float8::Native);
}

struct Float8Lane {
  using V = Float8;
  using M = Mask8;
  using Ptr = Float8*;
  static constexpr int kWidth = 8;
};

}  // namespace cohort::sim
