/// Which elements dropout keeps: the one definition that every kernel (scalar, SIMD, CUDA) follows. Host and device
/// code.
///
/// An element's fate is a function of (seed, step, layer, sample id, position of the element within its sample). One
/// Philox call decides eight elements with 16 bits each; eight elements of one call lie 16 apart, so that 16
/// neighbouring calls (a tile of 128 elements) fill SIMD lanes, and neighbouring CUDA threads write neighbouring
/// addresses.
#pragma once
#include <cstdint>

#include "core/philox.h"

namespace cohort::models {

inline constexpr int kDropoutTile = 128;  ///< elements of one sample that are decided together
inline constexpr int kDropoutLanes = 16;  ///< Philox calls per tile

/// An element is dropped where its 16 random bits are below the threshold: 65536 drops all, 0 drops none.
inline std::uint32_t dropout_threshold(double p) {
  return p <= 0.0 ? 0u : p >= 1.0 ? 65536u : static_cast<std::uint32_t>(p * 65536.0 + 0.5);
}

/// The factor of the kept elements: one over the probability that the threshold really gives, so that the mean is
/// exact.
inline float dropout_scale(std::uint32_t threshold) {
  return threshold >= 65536u ? 0.0f : 65536.0f / static_cast<float>(65536u - threshold);
}

/// Philox index of call `lane` (0..15) in `tile` of `layer`.
COHORT_HOST_DEVICE inline std::uint64_t dropout_index(std::uint32_t layer, std::uint64_t tile, std::uint32_t lane) {
  return (static_cast<std::uint64_t>(layer) << 32) | static_cast<std::uint32_t>(tile * kDropoutLanes + lane);
}

/// Random bits (0..65535) of the element at lane + 16·slot in the tile, slot 0..7.
COHORT_HOST_DEVICE inline std::uint32_t dropout_bits(const Philox4& call, int slot) {
  const std::uint32_t word = call.v[slot >> 1];
  return (slot & 1) != 0 ? word >> 16 : word & 0xffffu;
}

/// Whether `element` (position within the sample, below 2^35) of the sample behind `stream` is kept; the definition,
/// one element at a time. stream = RandomStream(seed, RandomPurpose::kDropout, sample id, step).
COHORT_HOST_DEVICE inline bool dropout_keeps(const RandomStream& stream, std::uint32_t layer, std::uint64_t element,
                                             std::uint32_t threshold) {
  const std::uint64_t tile = element / kDropoutTile;
  const auto within = static_cast<std::uint32_t>(element % kDropoutTile);
  const Philox4 call = stream.at(dropout_index(layer, tile, within % kDropoutLanes));
  return dropout_bits(call, static_cast<int>(within / kDropoutLanes)) >= threshold;
}

}  // namespace cohort::models
