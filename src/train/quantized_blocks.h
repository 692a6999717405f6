/// The loops of 8-bit optimizer states over blocks of numbers (quantized_state.h), in a file of their own that is compiled for speed and
/// without LibTorch.
#pragma once
#include <array>
#include <cstdint>

namespace cohort::train {

inline constexpr std::int64_t kStateBlock = 256;  ///< numbers of a block, which share a scale
inline constexpr std::size_t kMapValues = 256;    ///< what a code of 8 bits may stand for

/// 256 values, ascending, with what is needed to round to them quickly.
struct CodeMap {
  explicit CodeMap(const std::array<float, kMapValues>& ascending);
  std::array<float, kMapValues> values;
  std::array<float, kMapValues - 1> middles;
  std::array<std::uint8_t, 65536> first;  ///< by a number's upper 16 bits: a position at or before the nearest value's
  std::uint8_t zero = 0;                  ///< position of 0
};

/// Rounds n numbers divided by `largest`. A number below zero keeps its sign, as in bitsandbytes' optimizers.
void encode_block(const CodeMap& map, bool is_signed, const float* x, std::int64_t n, float largest,
                  std::uint8_t* codes);
/// The largest magnitude of n numbers.
float largest_of(const float* x, std::int64_t n);

/// What a step of AdamW does to every number: the gradient is multiplied by `unscale`, the parameter by `keep`; then
/// size * mean / (sqrt(variance) * root + eps) is subtracted from it. rest: 1 - beta.
struct AdamWFactors {
  float beta1, rest1, beta2, rest2, unscale, keep, size, root, eps;
};
/// One step of n parameters p, at most kStateBlock, with gradients g; codes and scale of both moments are replaced.
void update_block(const AdamWFactors& s, const CodeMap& with_sign, const CodeMap& without, std::int64_t n, float* p,
                  const float* g, std::uint8_t* mean_codes, float& mean_scale, std::uint8_t* variance_codes,
                  float& variance_scale);

}  // namespace cohort::train
