/// Loops over floats that are compiled for several processors, of which the widest that runs is chosen at the start, and
/// functions that such loops consist of.
///
///   COHORT_WIDE void squash(float* x, std::int64_t n) {
///     for (std::int64_t i = 0; i < n; ++i) x[i] = fast_tanh(x[i]);
///   }
///
/// A number's result does not depend on where it stands, nor on how many there are. What is not finite stays so.
///
/// They have no branches: GCC 12 makes a vector of a condition only where it may compute both sides (no-trapping-math), and not
/// where it has found out what follows from which side. So signs are taken from the bits.
#pragma once
#include <cstdint>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define COHORT_WIDE \
  __attribute__((optimize("O3", "no-trapping-math"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define COHORT_WIDE
#endif

namespace cohort::rl {

// __builtin_bit_cast: std::bit_cast is a function, which is not inlined into code for another processor.
/// All bits set where x is below zero, -0 included; else none.
[[gnu::always_inline]] inline std::int32_t negative(float x) {
  return __builtin_bit_cast(std::int32_t, x) >> 31;
}
/// x where the bits are set, else 0.
[[gnu::always_inline]] inline float where(std::int32_t bits, float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::int32_t, x) & bits);
}

/// e^x - 1 for x <= 0, to 1e-7: e^x = 2^n e^r with |r| <= ln 2 / 2 and Taylor's polynomial of e^r - 1.
[[gnu::always_inline]] inline float expm1_below_zero(float x) {
  constexpr float kRound = 12582912;  // 1.5 * 2^23: what is added to it becomes a whole number
  const float bounded = x < -20 ? -20 : x;
  const float shifted = bounded * 1.44269504f + kRound, n = shifted - kRound;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  const float less =
      r * (1 + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040)))))));
  // The whole number stands in the lowest bits of the sum.
  const float power = __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, shifted) + 127) << 23);
  return power * less + (power - 1);
}

/// x above zero, e^x - 1 below.
[[gnu::always_inline]] inline float fast_elu(float x) {
  return where(~negative(x), x) + expm1_below_zero(where(negative(x), x));
}

/// 1 / (1 + e^-x), to 1e-7.
[[gnu::always_inline]] inline float fast_sigmoid(float x) {
  const float less = expm1_below_zero(-__builtin_fabsf(x));
  return (1 + where(negative(x), less)) / (2 + less);
}

/// To 2e-7: tanh |x| = -m / (2 + m) with m = e^(-2 |x|) - 1.
[[gnu::always_inline]] inline float fast_tanh(float x) {
  const float less = expm1_below_zero(-2 * __builtin_fabsf(x));
  return __builtin_copysignf(-less / (2 + less), x);
}

}  // namespace cohort::rl
