/// Eight floats: AVX2 with FMA. A mask is eight integers, as the compiler's vector extensions compare.
#pragma once
#include <immintrin.h>

#include "sim/kernels/lane/lane_register.h"

namespace cohort::sim {

struct Avx2 {
  static constexpr int kWidth = 8;
  typedef float Native __attribute__((vector_size(32)));
  typedef int Integers __attribute__((vector_size(32)));
  using Mask = Integers;

  COHORT_LANE static Mask both(Mask a, Mask b) { return a & b; }
  COHORT_LANE static Mask either(Mask a, Mask b) { return a | b; }
  COHORT_LANE static Mask flip(Mask a) { return ~a; }
  COHORT_LANE static unsigned bits(Mask a) {
    return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(a)));
  }
  COHORT_LANE static Mask of_bits(unsigned bits) {
    const Integers own = {1, 2, 4, 8, 16, 32, 64, 128}, all = Integers{} + static_cast<int>(bits);
    return (all & own) == own;
  }
  COHORT_LANE static Mask less(Native a, Native b) { return a < b; }
  COHORT_LANE static Mask greater(Native a, Native b) { return a > b; }
  COHORT_LANE static Mask at_most(Native a, Native b) { return a <= b; }
  COHORT_LANE static Mask at_least(Native a, Native b) { return a >= b; }
  COHORT_LANE static Mask different(Native a, Native b) { return a != b; }
  COHORT_LANE static Mask equal(Native a, Native b) { return a == b; }
  /// By the sign bits of the mask. The extension's `mask ? a : b` compares a mask that was read with zero first.
  COHORT_LANE static Native blend(Mask mask, Native a, Native b) {
    return _mm256_blendv_ps(b, a, reinterpret_cast<__m256>(mask));
  }
  COHORT_LANE static Native broadcast(float value) { return _mm256_set1_ps(value); }
  COHORT_LANE static Native fma(Native a, Native b, Native c) { return _mm256_fmadd_ps(a, b, c); }
  COHORT_LANE static Native min(Native a, Native b) { return _mm256_min_ps(a, b); }
  COHORT_LANE static Native max(Native a, Native b) { return _mm256_max_ps(a, b); }
  COHORT_LANE static Native sqrt(Native a) { return _mm256_sqrt_ps(a); }
  COHORT_LANE static Native load(const float* p) { return _mm256_load_ps(p); }
  COHORT_LANE static Native load_anywhere(const float* p) { return _mm256_loadu_ps(p); }
  COHORT_LANE static void store(float* p, Native a) { _mm256_store_ps(p, a); }
  COHORT_LANE static float largest(Native a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
  }
  COHORT_LANE static Native gather(const float* p, const int* from) {
    return Native{p[from[0]], p[from[1]], p[from[2]], p[from[3]], p[from[4]], p[from[5]], p[from[6]], p[from[7]]};
  }
  COHORT_LANE static void scatter(float* p, const int* to, Native a) {
    for (int i = 0; i < kWidth; ++i) p[to[i]] = a[i];
  }
};

using Avx2Lane = RegisterLane<Avx2>;

}  // namespace cohort::sim
