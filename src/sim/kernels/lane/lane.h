/// The lane type that kernels are generic over, and the elementary functions that every width computes with the same
/// bits.
///
/// A lane policy L names L::V (a value of one environment, or of one environment per SIMD lane), L::M (a mask of such),
/// L::Ptr (addresses a workspace: L::V* on a CPU, strided on a GPU) and L::kWidth. Operations on V are overloads of the
/// functions below. Everything is built from +, -, *, /, sqrt, fma, compare and select, each of which IEEE 754 rounds
/// in one way only, so that one float, 8 and 16 of them agree bit for bit; contraction is off and fma is written out.
/// Minimum and maximum are compare and select for the same reason, which is what x86's instructions for them do.
///
/// This header and those it includes must not pull in inline functions of the standard library: they are compiled with
/// the instructions of one processor, and the linker would be free to use that copy everywhere.
#pragma once

#include "sim/kernels/lane/device.h"

namespace cohort::sim {

/// Which bit, of a word that is not zero.
COHORT_LANE int lowest_bit(unsigned long long word) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(word)) - 1;
#else
  return __builtin_ctzll(word);
#endif
}

/// The highest one.
COHORT_LANE int highest_bit(unsigned long long word) {
#if defined(__CUDA_ARCH__)
  return 63 - __clzll(static_cast<long long>(word));
#else
  return 63 - __builtin_clzll(word);
#endif
}

// ---- one float: what a GPU thread computes

COHORT_LANE float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
COHORT_LANE float sqrt(float a) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(a);
#else
  return __builtin_sqrtf(a);
#endif
}
COHORT_LANE float select(bool m, float a, float b) {
  return m ? a : b;
}
/// The second of two zeros, as comparing and choosing gives it. Left to itself nvcc makes min.f32 of a comparison with
/// the constant 0, which gives -0 for -0 and 0.
COHORT_LANE float min(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("{.reg .pred p; setp.lt.f32 p, %1, %2; selp.f32 %0, %1, %2, p;}" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a < b ? a : b;
#endif
}
/// Without its sign, that of a zero too.
COHORT_LANE float abs(float a) {
#if defined(__CUDA_ARCH__)
  return ::fabsf(a);
#else
  return __builtin_fabsf(a);
#endif
}
COHORT_LANE bool any(bool m) {
  return m;
}
/// Bit i: lane i.
COHORT_LANE unsigned lane_bits(bool m) {
  return m ? 1u : 0u;
}
/// The lanes whose bits are set.
COHORT_LANE bool lanes_of(unsigned bits, bool*) {
  return (bits & 1u) != 0;
}
/// The other lanes.
COHORT_LANE bool flip(bool m) {
  return !m;
}
COHORT_LANE float load(const float* p, float*) {
  return *p;
}
/// Of any address; load() needs one that is a multiple of the lanes' size.
COHORT_LANE float load_anywhere(const float* p, float*) {
  return *p;
}
COHORT_LANE void store(float* p, float v) {
  *p = v;
}
/// One lane of a value.
COHORT_LANE float get_lane(float v, int) {
  return v;
}
COHORT_LANE float largest_lane(float v) {
  return v;
}
COHORT_LANE void set_lane(float& v, int, float x) {
  v = x;
}
COHORT_LANE void add_to_lane(float& v, int, float x) {
  v += x;
}
/// Lane i is p[from[i]]; and back again. `from` and `to`: aligned as a register of as many ints.
COHORT_LANE float gather(const float* p, const int* from, float*) {
  return p[*from];
}
COHORT_LANE void scatter(float* p, const int* to, float v) {
  p[*to] = v;
}
/// x * 2^n for a whole number n with |n| < 126.
COHORT_LANE float scale_exponent(float x, float n) {
  union {
    int i;
    float f;
  } u;
  u.i = (static_cast<int>(n) + 127) << 23;
  return x * u.f;
}
/// Exponent of a positive normal number; mantissa in [1, 2).
COHORT_LANE float split_exponent(float x, float& mantissa) {
  union {
    int i;
    float f;
  } u;
  u.f = x;
  const int exponent = (u.i >> 23) - 127;
  u.i = (u.i & 0x007fffff) | 0x3f800000;
  mantissa = u.f;
  return static_cast<float>(exponent);
}

struct ScalarLane {
  using V = float;
  using M = bool;
  using Ptr = float*;
  static constexpr int kWidth = 1;
};

/// How a policy's groups, integers and bits lie in memory, which all lanes of a block share: one after the other. `Own`
/// addresses those that a block writes, `Read` integers of the model or the block's own. Where every thread has a block
/// of its own (cuda/lane.h), those of neighbouring threads lie beside each other.
template <class L>
struct Addressing {
  template <class T>
  using Own = T*;
  using Read = const int*;
};
template <class L, class T>
using Items = typename Addressing<L>::template Own<T>;
template <class L>
using IndexPtr = typename Addressing<L>::Read;

// ---- functions of any V

template <class V>
COHORT_LANE V min(V a, V b) {
  return select(a < b, a, b);
}
template <class V>
COHORT_LANE V max(V a, V b) {
  return select(a > b, a, b);
}
/// Calls f with every lane of a mask.
template <class M, class F>
COHORT_LANE void each_lane(M lanes, F f) {
  for (unsigned left = lane_bits(lanes); left != 0; left &= left - 1) f(lowest_bit(left));
}

/// a clipped to [lo, hi].
template <class V>
COHORT_LANE V clip(V a, V lo, V hi) {
  return min(max(a, lo), hi);
}
/// Nearest whole number, halves to even; |a| < 2^22.
template <class V>
COHORT_LANE V round(V a) {
  const V big(12582912.0f);
  return (a + big) - big;
}

/// Sine and cosine; absolute error below 2e-7 for |x| < 1e4 (reduction by pi in three parts, Cody and Waite 1980).
template <class V>
COHORT_LANE void sincos(V x, V& s, V& c) {
  const V n = round(x * V(0.318309886f));
  V r = fma(n, V(-3.140625f), x);
  r = fma(n, V(-9.6702575684e-4f), r);
  r = fma(n, V(-6.2771141e-7f), r);
  r = fma(n, V(-1.2154201e-10f), r);
  const V odd = n - V(2.0f) * round(n * V(0.5f));
  const V sign = V(1.0f) - V(2.0f) * odd * odd;
  const V z = r * r;
  V ps = fma(z, V(-2.5052108e-8f), V(2.7557319e-6f));
  ps = fma(ps, z, V(-1.9841270e-4f));
  ps = fma(ps, z, V(8.3333333e-3f));
  ps = fma(ps, z, V(-1.6666667e-1f));
  V pc = fma(z, V(2.0876757e-9f), V(-2.7557319e-7f));
  pc = fma(pc, z, V(2.4801587e-5f));
  pc = fma(pc, z, V(-1.3888889e-3f));
  pc = fma(pc, z, V(4.1666667e-2f));
  pc = fma(pc, z, V(-0.5f));
  s = fma(r * z, ps, r) * sign;
  c = fma(pc, z, V(1.0f)) * sign;
}

/// Angle of (x, y) in (-pi, pi]; 0 for the origin. Absolute error below 3e-7 (polynomial of Cephes' atanf).
template <class V>
COHORT_LANE V atan2(V y, V x) {
  const V ax = abs(x), ay = abs(y);
  const V big = max(ax, ay), small = min(ax, ay);
  V t = small / select(big > V(0.0f), big, V(1.0f));
  const auto upper = t > V(0.4142135624f);
  const V base = select(upper, V(0.7853981634f), V(0.0f));
  t = select(upper, (t - V(1.0f)) / (t + V(1.0f)), t);
  const V z = t * t;
  V p = fma(z, V(8.05374449538e-2f), V(-1.38776856032e-1f));
  p = fma(p, z, V(1.99777106478e-1f));
  p = fma(p, z, V(-3.33329491539e-1f));
  V angle = base + fma(p * z, t, t);
  angle = select(ay > ax, V(1.5707963268f) - angle, angle);
  angle = select(x < V(0.0f), V(3.1415926536f) - angle, angle);
  return select(y < V(0.0f), -angle, angle);
}

/// e^x; relative error below 3e-7; clipped to [-87, 88].
template <class V>
COHORT_LANE V exp(V x) {
  x = clip(x, V(-87.0f), V(88.0f));
  const V n = round(x * V(1.44269504f));
  V r = fma(n, V(-0.693359375f), x);
  r = fma(n, V(2.12194440e-4f), r);
  V p = fma(r, V(1.9875691500e-4f), V(1.3981999507e-3f));
  p = fma(p, r, V(8.3334519073e-3f));
  p = fma(p, r, V(4.1665795894e-2f));
  p = fma(p, r, V(1.6666665459e-1f));
  p = fma(p, r, V(5.0000001201e-1f));
  return scale_exponent(fma(p, r * r, r + V(1.0f)), n);
}

/// Natural logarithm of a positive normal number; relative error below 3e-7 away from 1, absolute near it.
template <class V>
COHORT_LANE V log(V x) {
  V m;
  V e = split_exponent(x, m);
  const auto high = m > V(1.41421356f);
  m = select(high, m * V(0.5f), m);
  e = select(high, e + V(1.0f), e);
  const V t = m - V(1.0f), z = t * t;
  V p = fma(t, V(7.0376836292e-2f), V(-1.1514610310e-1f));
  p = fma(p, t, V(1.1676998740e-1f));
  p = fma(p, t, V(-1.2420140846e-1f));
  p = fma(p, t, V(1.4249322787e-1f));
  p = fma(p, t, V(-1.6668057665e-1f));
  p = fma(p, t, V(2.0000714765e-1f));
  p = fma(p, t, V(-2.4999993993e-1f));
  p = fma(p, t, V(3.3333331174e-1f));
  V y = p * t * z;
  y = fma(e, V(-2.12194440e-4f), y);
  y = fma(z, V(-0.5f), y);
  return fma(e, V(0.693359375f), t + y);
}

/// a^b for a >= 0; 0^b = 0.
template <class V>
COHORT_LANE V pow(V a, float b) {
  if (b == 1.0f) return a;
  if (b == 2.0f) return a * a;
  if (b == 0.0f) return V(1.0f);
  const auto positive = a > V(1e-30f);
  return select(positive, exp(V(b) * log(select(positive, a, V(1.0f)))), V(0.0f));
}

}  // namespace cohort::sim
