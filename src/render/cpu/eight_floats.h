/// Eight floats as a lane type without any vector instruction: what the scalar lanes traverse meshes with. The same
/// operations as sim/cpu/lane_avx2.h, so that the results are the same bits.
#pragma once
#include "sim/kernels/lane/lane.h"

namespace cohort::render {

struct EightMask {
  unsigned bits;
  COHORT_LANE friend EightMask operator&(EightMask a, EightMask b) { return {a.bits & b.bits}; }
  COHORT_LANE friend EightMask operator|(EightMask a, EightMask b) { return {a.bits | b.bits}; }
  COHORT_LANE friend bool any(EightMask a) { return a.bits != 0; }
  COHORT_LANE friend unsigned lane_bits(EightMask a) { return a.bits; }
};

struct EightFloats {
  float v[8];
  EightFloats() = default;
  COHORT_LANE explicit EightFloats(float value) {
    for (float& x : v) x = value;
  }
  template <class F>
  COHORT_LANE static EightFloats each(F f) {
    EightFloats r;
    for (int i = 0; i < 8; ++i) r.v[i] = f(i);
    return r;
  }
  template <class F>
  COHORT_LANE static EightMask mask(F f) {
    unsigned bits = 0;
    for (int i = 0; i < 8; ++i) bits |= static_cast<unsigned>(f(i)) << i;
    return {bits};
  }
  COHORT_LANE friend EightFloats operator+(const EightFloats& a, const EightFloats& b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  COHORT_LANE friend EightFloats operator-(const EightFloats& a, const EightFloats& b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  COHORT_LANE friend EightFloats operator*(const EightFloats& a, const EightFloats& b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  COHORT_LANE friend EightFloats operator/(const EightFloats& a, const EightFloats& b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  COHORT_LANE friend EightFloats operator-(const EightFloats& a) {
    return each([&](int i) { return -a.v[i]; });
  }
  COHORT_LANE friend EightMask operator<(const EightFloats& a, const EightFloats& b) {
    return mask([&](int i) { return a.v[i] < b.v[i]; });
  }
  COHORT_LANE friend EightMask operator>(const EightFloats& a, const EightFloats& b) {
    return mask([&](int i) { return a.v[i] > b.v[i]; });
  }
  COHORT_LANE friend EightMask operator<=(const EightFloats& a, const EightFloats& b) {
    return mask([&](int i) { return a.v[i] <= b.v[i]; });
  }
  COHORT_LANE friend EightMask operator>=(const EightFloats& a, const EightFloats& b) {
    return mask([&](int i) { return a.v[i] >= b.v[i]; });
  }
  COHORT_LANE friend EightMask operator!=(const EightFloats& a, const EightFloats& b) {
    return mask([&](int i) { return a.v[i] != b.v[i]; });
  }
  COHORT_LANE friend EightFloats select(EightMask m, const EightFloats& a, const EightFloats& b) {
    return each([&](int i) { return (m.bits >> i & 1u) != 0 ? a.v[i] : b.v[i]; });
  }
  COHORT_LANE friend EightFloats fma(const EightFloats& a, const EightFloats& b, const EightFloats& c) {
    return each([&](int i) { return sim::fma(a.v[i], b.v[i], c.v[i]); });
  }
  COHORT_LANE friend EightFloats min(const EightFloats& a, const EightFloats& b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  COHORT_LANE friend EightFloats max(const EightFloats& a, const EightFloats& b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  COHORT_LANE friend EightFloats abs(const EightFloats& a) {
    return each([&](int i) { return sim::abs(a.v[i]); });
  }
  COHORT_LANE friend EightFloats load_anywhere(const float* p, EightFloats*) {
    return each([&](int i) { return p[i]; });
  }
  COHORT_LANE friend void store(float* p, const EightFloats& a) {
    for (int i = 0; i < 8; ++i) p[i] = a.v[i];
  }
  COHORT_LANE friend float get_lane(const EightFloats& a, int i) { return a.v[i]; }
};

struct EightLane {
  using V = EightFloats;
  static constexpr int kWidth = 8;
};

}  // namespace cohort::render
