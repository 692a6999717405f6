/// Eight floats as sim's lane type (sim/kernels/lane/lane_register.h) without AVX: what the scalar lanes traverse meshes with. The compiler
/// takes its vectors apart; the operations are those of sim/kernels/lane/lane_avx2.h, so that the results are the same bits.
#pragma once
#include <cstring>

#include "sim/kernels/lane/lane_register.h"

namespace cohort::render {

struct Eight {
  static constexpr int kWidth = 8;
  typedef float Native __attribute__((vector_size(32)));
  typedef int Integers __attribute__((vector_size(32)));
  using Mask = Integers;

  COHORT_LANE static Mask both(Mask a, Mask b) { return a & b; }
  COHORT_LANE static Mask either(Mask a, Mask b) { return a | b; }
  COHORT_LANE static unsigned bits(Mask a) {
    unsigned bits = 0;
    for (int i = 0; i < kWidth; ++i) bits |= static_cast<unsigned>(a[i] & 1) << i;
    return bits;
  }
  COHORT_LANE static Mask less(Native a, Native b) { return a < b; }
  COHORT_LANE static Mask greater(Native a, Native b) { return a > b; }
  COHORT_LANE static Mask at_most(Native a, Native b) { return a <= b; }
  COHORT_LANE static Mask at_least(Native a, Native b) { return a >= b; }
  COHORT_LANE static Mask different(Native a, Native b) { return a != b; }
  COHORT_LANE static Native blend(Mask mask, Native a, Native b) { return mask ? a : b; }
  COHORT_LANE static Native broadcast(float x) { return Native{x, x, x, x, x, x, x, x}; }
  COHORT_LANE static Native fma(Native a, Native b, Native c) {
    for (int i = 0; i < kWidth; ++i) c[i] = sim::fma(a[i], b[i], c[i]);
    return c;
  }
  COHORT_LANE static Native min(Native a, Native b) { return a < b ? a : b; }
  COHORT_LANE static Native max(Native a, Native b) { return a > b ? a : b; }
  COHORT_LANE static Native load_anywhere(const float* p) {
    Native a;
    std::memcpy(&a, p, sizeof a);
    return a;
  }
  COHORT_LANE static void store(float* p, Native a) { std::memcpy(p, &a, sizeof a); }
};

using EightLane = sim::RegisterLane<Eight>;

}  // namespace cohort::render
