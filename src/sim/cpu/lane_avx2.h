/// Eight floats: AVX2 with FMA. A mask is eight integers, as the compiler's vector extensions compare.
#pragma once
#include <immintrin.h>

#include "sim/cpu/lane_register.h"

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
  COHORT_LANE static Native sqrt(Native a) { return _mm256_sqrt_ps(a); }
  COHORT_LANE static Native load(const float* p) { return _mm256_load_ps(p); }
  COHORT_LANE static Native load_anywhere(const float* p) { return _mm256_loadu_ps(p); }
  COHORT_LANE static void store(float* p, Native a) { _mm256_store_ps(p, a); }
  COHORT_LANE static Native permute(Native a, const int* from) {
    return _mm256_permutevar8x32_ps(a, _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  }
};

using Avx2Lane = RegisterLane<Avx2>;

}  // namespace cohort::sim
