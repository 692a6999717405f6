/// A SIMD register of floats as a lane type (lane.h), for any instruction set I that names its vector type
/// and the few operations that are not the compiler's vector extensions:
///
///   I::kWidth                     floats in a register
///   I::Native, I::Integers        the vector of floats, and of as many ints
///   I::Mask                       one bit or one int per lane: I::both, either, flip, bits, of_bits
///   I::less, greater, ..., equal  comparisons to a Mask; I::blend(mask, where_set, elsewhere)
///   I::min, max                   as lane.h's
///   I::broadcast, fma, sqrt, load, load_anywhere, store, gather, scatter, largest (the largest float of a register)
#pragma once

#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

template <class I>
struct RegisterMask {
  typename I::Mask v;

  COHORT_LANE friend RegisterMask operator&(RegisterMask a, RegisterMask b) { return {I::both(a.v, b.v)}; }
  COHORT_LANE friend RegisterMask operator|(RegisterMask a, RegisterMask b) { return {I::either(a.v, b.v)}; }
  COHORT_LANE friend RegisterMask flip(RegisterMask a) { return {I::flip(a.v)}; }
  COHORT_LANE friend bool any(RegisterMask a) { return I::bits(a.v) != 0; }
  COHORT_LANE friend unsigned lane_bits(RegisterMask a) { return I::bits(a.v); }
  COHORT_LANE friend RegisterMask lanes_of(unsigned bits, RegisterMask*) { return {I::of_bits(bits)}; }
};

template <class I>
struct Register {
  using Native = typename I::Native;
  using Integers = typename I::Integers;
  using M = RegisterMask<I>;

  Native v;
  Register() = default;
  COHORT_LANE Register(Native native) : v(native) {}
  COHORT_LANE Register(float value) : v(I::broadcast(value)) {}

  COHORT_LANE friend Register operator+(Register a, Register b) { return a.v + b.v; }
  COHORT_LANE friend Register operator-(Register a, Register b) { return a.v - b.v; }
  COHORT_LANE friend Register operator*(Register a, Register b) { return a.v * b.v; }
  COHORT_LANE friend Register operator/(Register a, Register b) { return a.v / b.v; }
  COHORT_LANE friend Register operator-(Register a) { return -a.v; }
  COHORT_LANE friend Register& operator+=(Register& a, Register b) { return a = a + b; }
  COHORT_LANE friend Register& operator-=(Register& a, Register b) { return a = a - b; }
  COHORT_LANE friend Register& operator*=(Register& a, Register b) { return a = a * b; }
  COHORT_LANE friend M operator<(Register a, Register b) { return {I::less(a.v, b.v)}; }
  COHORT_LANE friend M operator>(Register a, Register b) { return {I::greater(a.v, b.v)}; }
  COHORT_LANE friend M operator<=(Register a, Register b) { return {I::at_most(a.v, b.v)}; }
  COHORT_LANE friend M operator>=(Register a, Register b) { return {I::at_least(a.v, b.v)}; }
  COHORT_LANE friend M operator!=(Register a, Register b) { return {I::different(a.v, b.v)}; }
  COHORT_LANE friend M operator==(Register a, Register b) { return {I::equal(a.v, b.v)}; }
  COHORT_LANE friend Register select(M mask, Register a, Register b) { return I::blend(mask.v, a.v, b.v); }
  COHORT_LANE friend Register fma(Register a, Register b, Register c) { return I::fma(a.v, b.v, c.v); }
  COHORT_LANE friend Register min(Register a, Register b) { return I::min(a.v, b.v); }
  COHORT_LANE friend Register max(Register a, Register b) { return I::max(a.v, b.v); }
  COHORT_LANE friend Register abs(Register a) {
    return reinterpret_cast<Native>(reinterpret_cast<Integers>(a.v) & 0x7fffffff);
  }
  COHORT_LANE friend Register sqrt(Register a) { return I::sqrt(a.v); }
  COHORT_LANE friend Register load(const float* p, Register*) { return I::load(p); }
  COHORT_LANE friend Register load_anywhere(const float* p, Register*) { return I::load_anywhere(p); }
  COHORT_LANE friend void store(float* p, Register a) { I::store(p, a.v); }
  COHORT_LANE friend Register gather(const float* p, const int* from, Register*) { return I::gather(p, from); }
  COHORT_LANE friend void scatter(float* p, const int* to, Register a) { I::scatter(p, to, a.v); }
  COHORT_LANE friend float get_lane(const Register& a, int lane) { return a.v[lane]; }
  COHORT_LANE friend float largest_lane(Register a) { return I::largest(a.v); }
  COHORT_LANE friend void set_lane(Register& a, int lane, float x) { a.v[lane] = x; }
  COHORT_LANE friend void add_to_lane(Register& a, int lane, float x) { a.v[lane] += x; }
  COHORT_LANE friend Register scale_exponent(Register x, Register n) {
    const Integers bits = (__builtin_convertvector(n.v, Integers) + 127) << 23;
    return x.v * reinterpret_cast<Native>(bits);
  }
  COHORT_LANE friend Register split_exponent(Register x, Register& mantissa) {
    const Integers bits = reinterpret_cast<Integers>(x.v);
    mantissa = reinterpret_cast<Native>((bits & 0x007fffff) | 0x3f800000);
    return __builtin_convertvector((bits >> 23) - 127, Native);
  }
};

template <class I>
struct RegisterLane {
  using V = Register<I>;
  using M = RegisterMask<I>;
  using Ptr = V*;
  static constexpr int kWidth = I::kWidth;
};

}  // namespace cohort::sim
