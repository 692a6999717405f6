/// The kernels of cpu/kernels.h, written once with vector types of the width that the including file is compiled for.
///
/// Included by exactly one .cpp per instruction set. Everything stands in an unnamed namespace, and nothing of the
/// standard library with code is included: an inline function compiled with wider instructions must never reach another
/// file.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "models/cpu/kernels.h"

namespace cohort::models::cpu {
namespace {

#if defined(__AVX512F__)
inline constexpr int kBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kBytes = 32;
#else
inline constexpr int kBytes = 16;
#endif

using U64 [[gnu::vector_size(kBytes)]] = std::uint64_t;
using U32 [[gnu::vector_size(kBytes)]] = std::uint32_t;
using F32 [[gnu::vector_size(kBytes)]] = float;
using U16 [[gnu::vector_size(kBytes / 2)]] = std::uint16_t;

inline constexpr int kWide = kBytes / 8;    // 64-bit lanes
inline constexpr int kNarrow = kBytes / 4;  // 32-bit lanes

/// Products of the lower halves of the 64-bit lanes.
[[gnu::always_inline]] inline U64 multiply_low_halves(U64 a, std::uint64_t b) {
#if defined(__AVX512F__)
  // The zero-masked form: GCC 12 warns of an uninitialised operand inside the plain one.
  return (U64)_mm512_maskz_mul_epu32(0xff, (__m512i)a, _mm512_set1_epi64(static_cast<long long>(b)));
#elif defined(__AVX2__)
  return (U64)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(static_cast<long long>(b)));
#elif defined(__SSE2__)
  return (U64)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(static_cast<long long>(b)));
#else
  return (a & 0xffffffffu) * b;
#endif
}

/// Element access: float32 lanes from and to memory.
struct AsFloat32 {
  using Memory = float;
  [[gnu::always_inline]] static F32 load(const float* p) {
    F32 v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  [[gnu::always_inline]] static void store(float* p, F32 v) { std::memcpy(p, &v, sizeof v); }
};

struct AsBFloat16 {
  using Memory = std::uint16_t;
  [[gnu::always_inline]] static F32 load(const std::uint16_t* p) {
    U16 v;
    std::memcpy(&v, p, sizeof v);
    return (F32)(__builtin_convertvector(v, U32) << 16);
  }
  /// Round to nearest even; a NaN stays one.
  [[gnu::always_inline]] static void store(std::uint16_t* p, F32 v) {
    const U32 bits = (U32)v;
    const U32 rounded = (bits + (0x7fffu + ((bits >> 16) & 1u))) >> 16;
    const U32 chosen = v == v ? rounded : U32{} + 0x7fc0u;
    const U16 narrow = __builtin_convertvector(chosen, U16);
    std::memcpy(p, &narrow, sizeof narrow);
  }
};

struct NoResidual {
  using Memory = float;
  [[gnu::always_inline]] static F32 load(const float*) { return F32{}; }
};

/// One tile of 128 elements. Philox runs in 64-bit lanes whose lower half counts (the upper one is rubbish between
/// rounds); even and odd calls stand in two vectors, so that putting them back together is one shift.
template <class In, class Residual, class Out>
[[gnu::always_inline]] inline void dropout_tile(const DropoutTiles& t, std::uint32_t tile,
                                                const typename In::Memory* in,
                                                const typename Residual::Memory* residual, typename Out::Memory* out) {
  U64 lane{};
  for (int i = 0; i < kWide; ++i) lane[i] = static_cast<std::uint64_t>(2 * i);
  for (int first = 0; first < kDropoutLanes; first += kNarrow) {
    U64 c[2][4];
    for (int odd = 0; odd < 2; ++odd) {
      const std::uint32_t call = tile * kDropoutLanes + static_cast<std::uint32_t>(first + odd);
      c[odd][0] = lane + call;
      c[odd][1] = U64{} + t.layer;
      c[odd][2] = U64{} + t.stream.id;
      c[odd][3] = U64{} + t.stream.step;
    }
    std::uint32_t k0 = t.stream.key0, k1 = t.stream.key1;
    for (int round = 0; round < 10; ++round) {
      for (int odd = 0; odd < 2; ++odd) {
        const U64 p0 = multiply_low_halves(c[odd][0], 0xD2511F53u);
        const U64 p1 = multiply_low_halves(c[odd][2], 0xCD9E8D57u);
        c[odd][0] = (p1 >> 32) ^ c[odd][1] ^ static_cast<std::uint64_t>(k0);
        c[odd][2] = (p0 >> 32) ^ c[odd][3] ^ static_cast<std::uint64_t>(k1);
        c[odd][1] = p1;
        c[odd][3] = p0;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const U32 threshold = U32{} + t.threshold;
    for (int word = 0; word < 4; ++word) {
      const U32 bits = (U32)((c[0][word] & 0xffffffffu) | (c[1][word] << 32));
      const int at = word * 2 * kDropoutLanes + first;
      const F32 low = In::load(in + at), high = In::load(in + at + kDropoutLanes);
      const F32 kept_low = (bits & 0xffffu) >= threshold ? low * t.scale : F32{};
      const F32 kept_high = (bits >> 16) >= threshold ? high * t.scale : F32{};
      if constexpr (__is_same(Residual, NoResidual)) {
        Out::store(out + at, kept_low);
        Out::store(out + at + kDropoutLanes, kept_high);
      } else {
        const F32 base_low = Residual::load(residual + at), base_high = Residual::load(residual + at + kDropoutLanes);
        Out::store(out + at, base_low + kept_low);
        Out::store(out + at + kDropoutLanes, base_high + kept_high);
      }
    }
  }
}

template <class In, class Residual, class Out>
void dropout_tiles(const DropoutTiles& t) {
  const auto* in = static_cast<const typename In::Memory*>(t.in);
  const auto* residual = static_cast<const typename Residual::Memory*>(t.residual);
  auto* out = static_cast<typename Out::Memory*>(t.out);
  constexpr bool kAdds = !__is_same(Residual, NoResidual);
  for (std::int64_t tile = t.first_tile; tile < t.last_tile; ++tile) {
    const std::int64_t at = tile * kDropoutTile;
    const std::int64_t left = t.count - at;
    if (left >= kDropoutTile) {
      dropout_tile<In, Residual, Out>(t, static_cast<std::uint32_t>(tile), in + at, kAdds ? residual + at : nullptr,
                                      out + at);
      continue;
    }
    // The sample ends within this tile: work on a copy.
    typename In::Memory in_copy[kDropoutTile] = {};
    typename Residual::Memory residual_copy[kDropoutTile] = {};
    typename Out::Memory out_copy[kDropoutTile];
    const auto n = static_cast<std::size_t>(left);
    std::memcpy(in_copy, in + at, n * sizeof in_copy[0]);
    if constexpr (kAdds) std::memcpy(residual_copy, residual + at, n * sizeof residual_copy[0]);
    dropout_tile<In, Residual, Out>(t, static_cast<std::uint32_t>(tile), in_copy, residual_copy, out_copy);
    std::memcpy(out + at, out_copy, n * sizeof out_copy[0]);
  }
}

template <class In, class Residual>
void dropout_out(const DropoutTiles& t) {
  if (t.out_type == Element::kFloat32)
    dropout_tiles<In, Residual, AsFloat32>(t);
  else
    dropout_tiles<In, Residual, AsBFloat16>(t);
}

template <class In>
void dropout_residual(const DropoutTiles& t) {
  if (t.residual == nullptr)
    dropout_out<In, NoResidual>(t);
  else if (t.residual_type == Element::kFloat32)
    dropout_out<In, AsFloat32>(t);
  else
    dropout_out<In, AsBFloat16>(t);
}

void dropout(const DropoutTiles& t) {
  if (t.in_type == Element::kFloat32)
    dropout_residual<AsFloat32>(t);
  else
    dropout_residual<AsBFloat16>(t);
}

/// Lane i + kHalf in lane i, for i below kHalf; what stands above is rubbish.
template <int kHalf, int... kLane>
[[gnu::always_inline]] inline F32 upper_half(F32 v, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(v, v, ((kLane + kHalf) % kNarrow)...);
}
template <int kHalf>
[[gnu::always_inline]] inline F32 upper_half(F32 v) {
  return upper_half<kHalf>(v, std::make_integer_sequence<int, kNarrow>());
}

/// Dot product in 16 partial sums, added up in a fixed tree (lane j + lane j + 8, then 4, 2, 1): the same bits for
/// every vector width.
[[gnu::always_inline]] inline float dot(const float* a, const float* b, std::int64_t n) {
  constexpr int kSums = 16;
  constexpr int kVectors = kSums / kNarrow;
  F32 sum[kVectors] = {};
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int v = 0; v < kVectors; ++v)
      sum[v] += AsFloat32::load(a + i + v * kNarrow) * AsFloat32::load(b + i + v * kNarrow);
  if (i < n) {
    float lanes[kSums];
    std::memcpy(lanes, sum, sizeof lanes);
    for (int j = 0; i < n; ++i, ++j) lanes[j] += a[i] * b[i];
    std::memcpy(sum, lanes, sizeof lanes);
  }
  if constexpr (kVectors == 4) sum[0] += sum[2], sum[1] += sum[3];
  if constexpr (kVectors >= 2) sum[0] += sum[1];
  if constexpr (kNarrow == 16) sum[0] += upper_half<8>(sum[0]);
  if constexpr (kNarrow >= 8) sum[0] += upper_half<4>(sum[0]);
  sum[0] += upper_half<2>(sum[0]);
  return sum[0][0] + sum[0][1];
}

void sparsity(const SparsityRows& r) {
  const auto n_key = static_cast<float>(r.n_key);
  for (std::int64_t i = 0; i < r.n_query; ++i) {
    const float* q = r.q + i * r.q_stride;
    const std::int64_t* samples = r.samples + i * r.n_sample;
    float largest = dot(q, r.k + samples[0] * r.k_stride, r.width);
    float sum = largest;
    for (std::int64_t j = 1; j < r.n_sample; ++j) {
      const float score = dot(q, r.k + samples[j] * r.k_stride, r.width);
      largest = score > largest ? score : largest;
      sum += score;
    }
    r.out[i] = largest - sum / n_key;
  }
}

}  // namespace
}  // namespace cohort::models::cpu
