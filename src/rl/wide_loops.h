/// Loops over floats that are compiled for several processors, of which the widest that runs is chosen at the start, and
/// functions that such loops consist of.
///
///   COHORT_WIDE void squash(float* x, std::int64_t n) {
///     for (std::int64_t i = 0; i < n; ++i) x[i] = fast_tanh(x[i]);
///   }
///
/// A number's result does not depend on where it stands, nor on how many there are. What is not finite stays so.
#pragma once
#include <bit>
#include <cstdint>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define COHORT_WIDE __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define COHORT_WIDE
#endif

namespace cohort::rl {

/// e^x - 1 for x <= 0, to 1e-7: e^x = 2^n e^r with |r| <= ln 2 / 2 and Taylor's polynomial of e^r - 1.
[[gnu::always_inline]] inline float expm1_below_zero(float x) {
  constexpr float kRound = 12582912;  // 1.5 * 2^23: what is added to it becomes a whole number
  const float bounded = x < -20 ? -20 : x;
  const float shifted = bounded * 1.44269504f + kRound, n = shifted - kRound;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  const float less =
      r * (1 + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040)))))));
  // The whole number stands in the lowest bits of the sum.
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127) << 23);
  return power * less + (power - 1);
}

/// 1 / (1 + e^-x), to 1e-7.
[[gnu::always_inline]] inline float fast_sigmoid(float x) {
  const float less = expm1_below_zero(x > 0 ? -x : x);  // of -|x|
  return (x > 0 ? 1 : 1 + less) / (2 + less);
}

/// To 2e-7: tanh |x| = -m / (2 + m) with m = e^(-2 |x|) - 1.
[[gnu::always_inline]] inline float fast_tanh(float x) {
  const float less = expm1_below_zero(x > 0 ? -2 * x : 2 * x);
  const float size = -less / (2 + less);
  return x > 0 ? size : -size;
}

}  // namespace cohort::rl
