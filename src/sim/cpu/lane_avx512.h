/// Sixteen floats: AVX-512 (F and DQ). Compiler vector extensions behind a small wrapper; only sqrt, fma and any() are
/// intrinsics.
#pragma once
#include <immintrin.h>

#include "sim/kernels/lane.h"

namespace cohort::sim {

struct Mask16 {
  typedef int Native __attribute__((vector_size(64)));
  Native v;
};
COHORT_LANE Mask16 operator&(Mask16 a, Mask16 b) {
  return {a.v & b.v};
}
COHORT_LANE Mask16 operator|(Mask16 a, Mask16 b) {
  return {a.v | b.v};
}
COHORT_LANE Mask16 flip(Mask16 a) {
  return {~a.v};
}
COHORT_LANE bool any(Mask16 m) {
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(m.v)) != 0;
}

struct Float16 {
  typedef float Native __attribute__((vector_size(64)));
  Native v;
  Float16() = default;
  COHORT_LANE Float16(Native native) : v(native) {}
  COHORT_LANE Float16(float value) : v(reinterpret_cast<Native>(_mm512_set1_ps(value))) {}
};
COHORT_LANE Float16 operator+(Float16 a, Float16 b) {
  return a.v + b.v;
}
COHORT_LANE Float16 operator-(Float16 a, Float16 b) {
  return a.v - b.v;
}
COHORT_LANE Float16 operator*(Float16 a, Float16 b) {
  return a.v * b.v;
}
COHORT_LANE Float16 operator/(Float16 a, Float16 b) {
  return a.v / b.v;
}
COHORT_LANE Float16 operator-(Float16 a) {
  return -a.v;
}
COHORT_LANE Float16& operator+=(Float16& a, Float16 b) {
  return a = a + b;
}
COHORT_LANE Float16& operator-=(Float16& a, Float16 b) {
  return a = a - b;
}
COHORT_LANE Float16& operator*=(Float16& a, Float16 b) {
  return a = a * b;
}
COHORT_LANE Mask16 operator<(Float16 a, Float16 b) {
  return {a.v < b.v};
}
COHORT_LANE Mask16 operator>(Float16 a, Float16 b) {
  return {a.v > b.v};
}
COHORT_LANE Mask16 operator<=(Float16 a, Float16 b) {
  return {a.v <= b.v};
}
COHORT_LANE Mask16 operator>=(Float16 a, Float16 b) {
  return {a.v >= b.v};
}
COHORT_LANE Mask16 operator!=(Float16 a, Float16 b) {
  return {a.v != b.v};
}
COHORT_LANE Mask16 operator==(Float16 a, Float16 b) {
  return {a.v == b.v};
}
COHORT_LANE Float16 select(Mask16 m, Float16 a, Float16 b) {
  return m.v ? a.v : b.v;
}
COHORT_LANE Float16 fma(Float16 a, Float16 b, Float16 c) {
  return reinterpret_cast<Float16::Native>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a.v), reinterpret_cast<__m512>(b.v), reinterpret_cast<__m512>(c.v)));
}
/// The masked form: GCC 12 takes the undefined operand inside _mm512_sqrt_ps for an uninitialized variable (its bug
/// 105593).
COHORT_LANE Float16 sqrt(Float16 a) {
  return reinterpret_cast<Float16::Native>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(a.v)));
}
COHORT_LANE Float16 load(const float* p, Float16*) {
  return reinterpret_cast<Float16::Native>(_mm512_load_ps(p));
}
COHORT_LANE void store(float* p, Float16 a) {
  _mm512_store_ps(p, reinterpret_cast<__m512>(a.v));
}
COHORT_LANE Float16 scale_exponent(Float16 x, Float16 n) {
  const Mask16::Native bits = (__builtin_convertvector(n.v, Mask16::Native) + 127) << 23;
  return x.v * reinterpret_cast<Float16::Native>(bits);
}
COHORT_LANE Float16 split_exponent(Float16 x, Float16& mantissa) {
  const Mask16::Native bits = reinterpret_cast<Mask16::Native>(x.v);
  mantissa = reinterpret_cast<Float16::Native>((bits & 0x007fffff) | 0x3f800000);
  return __builtin_convertvector((bits >> 23) - 127, Float16::Native);
}

struct Float16Lane {
  using V = Float16;
  using M = Mask16;
  using Ptr = Float16*;
  static constexpr int kWidth = 16;
};

}  // namespace cohort::sim
