/// Sixteen floats: AVX-512 (F and DQ). Compiler vector extensions behind a small wrapper; sqrt, fma and everything
/// about masks are intrinsics, because the extensions keep a mask as sixteen integers and turn it into a mask register
/// and back at every use.
#pragma once
#include <immintrin.h>

#include "sim/kernels/lane.h"

namespace cohort::sim {

struct Mask16 {
  __mmask16 v;
};
COHORT_LANE Mask16 operator&(Mask16 a, Mask16 b) {
  return {static_cast<__mmask16>(a.v & b.v)};
}
COHORT_LANE Mask16 operator|(Mask16 a, Mask16 b) {
  return {static_cast<__mmask16>(a.v | b.v)};
}
COHORT_LANE Mask16 flip(Mask16 a) {
  return {static_cast<__mmask16>(~a.v)};
}
COHORT_LANE bool any(Mask16 m) {
  return m.v != 0;
}
COHORT_LANE unsigned lane_bits(Mask16 m) {
  return m.v;
}

typedef int Int16 __attribute__((vector_size(64)));
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
  return {_mm512_cmp_ps_mask(reinterpret_cast<__m512>(a.v), reinterpret_cast<__m512>(b.v), _CMP_LT_OS)};
}
COHORT_LANE Mask16 operator>(Float16 a, Float16 b) {
  return {_mm512_cmp_ps_mask(reinterpret_cast<__m512>(a.v), reinterpret_cast<__m512>(b.v), _CMP_GT_OS)};
}
COHORT_LANE Mask16 operator<=(Float16 a, Float16 b) {
  return {_mm512_cmp_ps_mask(reinterpret_cast<__m512>(a.v), reinterpret_cast<__m512>(b.v), _CMP_LE_OS)};
}
COHORT_LANE Mask16 operator>=(Float16 a, Float16 b) {
  return {_mm512_cmp_ps_mask(reinterpret_cast<__m512>(a.v), reinterpret_cast<__m512>(b.v), _CMP_GE_OS)};
}
COHORT_LANE Mask16 operator!=(Float16 a, Float16 b) {
  return {_mm512_cmp_ps_mask(reinterpret_cast<__m512>(a.v), reinterpret_cast<__m512>(b.v), _CMP_NEQ_UQ)};
}
COHORT_LANE Mask16 operator==(Float16 a, Float16 b) {
  return {_mm512_cmp_ps_mask(reinterpret_cast<__m512>(a.v), reinterpret_cast<__m512>(b.v), _CMP_EQ_OQ)};
}
COHORT_LANE Float16 select(Mask16 m, Float16 a, Float16 b) {
  return reinterpret_cast<Float16::Native>(
      _mm512_mask_blend_ps(m.v, reinterpret_cast<__m512>(b.v), reinterpret_cast<__m512>(a.v)));
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
COHORT_LANE Float16 load_anywhere(const float* p, Float16*) {
  return reinterpret_cast<Float16::Native>(_mm512_loadu_ps(p));
}
COHORT_LANE void store(float* p, Float16 a) {
  _mm512_store_ps(p, reinterpret_cast<__m512>(a.v));
}
COHORT_LANE Float16 scale_exponent(Float16 x, Float16 n) {
  const Int16 bits = (__builtin_convertvector(n.v, Int16) + 127) << 23;
  return x.v * reinterpret_cast<Float16::Native>(bits);
}
COHORT_LANE Float16 split_exponent(Float16 x, Float16& mantissa) {
  const Int16 bits = reinterpret_cast<Int16>(x.v);
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
