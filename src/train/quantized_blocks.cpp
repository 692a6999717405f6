#include "train/quantized_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cohort::train {

CodeMap::CodeMap(const std::array<float, kMapValues>& ascending) : values(ascending) {
  for (std::size_t i = 0; i + 1 < kMapValues; ++i) middles[i] = 0.5f * (values[i] + values[i + 1]);
  for (std::uint32_t high = 0; high < first.size(); ++high) {
    // The least number whose upper half these bits are.
    const std::uint32_t bits = (high << 16) | (high >= 0x8000u ? 0xffffu : 0u);
    const float least = std::bit_cast<float>(bits);
    first[high] =
        std::isfinite(least)
            ? static_cast<std::uint8_t>(std::lower_bound(middles.begin(), middles.end(), least) - middles.begin())
            : std::uint8_t{0};
  }
  zero = static_cast<std::uint8_t>(std::find(values.begin(), values.end(), 0.0f) - values.begin());
}

namespace {

/// The nearest value's position.
std::uint8_t nearest(const CodeMap& map, float x) {
  std::uint32_t c = map.first[std::bit_cast<std::uint32_t>(x) >> 16];
  while (c < kMapValues - 1 && x > map.middles[c]) ++c;
  return static_cast<std::uint8_t>(c);
}

}  // namespace

void encode_block(const CodeMap& map, bool is_signed, const float* x, std::int64_t n, float largest,
                  std::uint8_t* codes) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint8_t c = largest > 0.0f ? nearest(map, x[i] / largest) : map.zero;
    if (is_signed && x[i] < 0.0f && c == map.zero) --c;
    codes[i] = c;
  }
}

float largest_of(const float* x, std::int64_t n) {
  float largest = 0.0f;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

void update_block(const AdamWFactors& s, const CodeMap& with_sign, const CodeMap& without, std::int64_t n, float* p,
                  const float* g, std::uint8_t* mean_codes, float& mean_scale, std::uint8_t* variance_codes,
                  float& variance_scale) {
  std::array<float, kStateBlock> m, v;
  for (std::int64_t i = 0; i < n; ++i) {
    m[static_cast<std::size_t>(i)] = with_sign.values[mean_codes[i]] * mean_scale;
    v[static_cast<std::size_t>(i)] = without.values[variance_codes[i]] * variance_scale;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const float x = g[i] * s.unscale;
    m[k] = s.beta1 * m[k] + s.rest1 * x;
    v[k] = s.beta2 * v[k] + s.rest2 * x * x;
    p[i] = p[i] * s.keep - s.size * m[k] / (std::sqrt(v[k]) * s.root + s.eps);
  }
  mean_scale = largest_of(m.data(), n);
  variance_scale = largest_of(v.data(), n);
  encode_block(with_sign, true, m.data(), n, mean_scale, mean_codes);
  encode_block(without, false, v.data(), n, variance_scale, variance_codes);
}

}  // namespace cohort::train
