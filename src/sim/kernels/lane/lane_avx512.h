/// Sixteen floats: AVX-512 (F and DQ). A mask is a mask register, so that everything about masks is an intrinsic: the
/// compiler's vector extensions keep a mask as sixteen integers and turn it into a mask register and back at every use.
#pragma once
#include <immintrin.h>

#include "sim/kernels/lane/lane_avx2.h"

namespace cohort::sim {

struct Avx512 {
  static constexpr int kWidth = 16;
  typedef float Native __attribute__((vector_size(64)));
  typedef int Integers __attribute__((vector_size(64)));
  using Mask = __mmask16;

  COHORT_LANE static Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  COHORT_LANE static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  COHORT_LANE static Mask flip(Mask a) { return static_cast<Mask>(~a); }
  COHORT_LANE static unsigned bits(Mask a) { return a; }
  COHORT_LANE static Mask of_bits(unsigned bits) { return static_cast<Mask>(bits); }
  COHORT_LANE static Mask less(Native a, Native b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OS); }
  COHORT_LANE static Mask greater(Native a, Native b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OS); }
  COHORT_LANE static Mask at_most(Native a, Native b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OS); }
  COHORT_LANE static Mask at_least(Native a, Native b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OS); }
  COHORT_LANE static Mask different(Native a, Native b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
  COHORT_LANE static Mask equal(Native a, Native b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  COHORT_LANE static Native blend(Mask mask, Native a, Native b) { return _mm512_mask_blend_ps(mask, b, a); }
  COHORT_LANE static Native broadcast(float value) { return _mm512_set1_ps(value); }
  COHORT_LANE static Native fma(Native a, Native b, Native c) { return _mm512_fmadd_ps(a, b, c); }
  COHORT_LANE static Native min(Native a, Native b) { return _mm512_maskz_min_ps(0xffff, a, b); }
  COHORT_LANE static Native max(Native a, Native b) { return _mm512_maskz_max_ps(0xffff, a, b); }
  /// The masked form: GCC 12 takes the undefined operand inside _mm512_sqrt_ps for an uninitialized variable (its bug
  /// 105593).
  COHORT_LANE static Native sqrt(Native a) { return _mm512_maskz_sqrt_ps(0xffff, a); }
  COHORT_LANE static Native load(const float* p) { return _mm512_load_ps(p); }
  COHORT_LANE static Native load_anywhere(const float* p) { return _mm512_loadu_ps(p); }
  COHORT_LANE static void store(float* p, Native a) { _mm512_store_ps(p, a); }
  COHORT_LANE static float largest(Native a) {
    alignas(64) float half[2][8];  // a cast to half of a register has that bug, too
    _mm512_store_ps(half[0], a);
    return Avx2::largest(_mm256_max_ps(_mm256_load_ps(half[0]), _mm256_load_ps(half[1])));
  }
  /// The masked form: see sqrt.
  COHORT_LANE static Native gather(const float* p, const int* from) {
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, _mm512_load_si512(from), p, 4);
  }
  COHORT_LANE static void scatter(float* p, const int* to, Native a) {
    _mm512_i32scatter_ps(p, _mm512_load_si512(to), a, 4);
  }
};

using Avx512Lane = RegisterLane<Avx512>;

}  // namespace cohort::sim
