#include "render/traced_texture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/index.h"

namespace cohort::render {

namespace {

using sim::at;

/// IEC 61966-2-1.
unsigned char linear_of_srgb(unsigned char byte) {
  const double s = byte / 255.0;
  const double l = s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
  return static_cast<unsigned char>(std::lround(255 * l));
}

unsigned channel(unsigned pixel, unsigned c) {
  return pixel >> (8 * c) & 255u;
}

/// Half the size, at least 1; each texel the mean of those around its centre, as a linear filter gives it.
void halve(const unsigned* from, int width, int height, unsigned* to, int to_width, int to_height) {
  if (width == 2 * to_width && height == 2 * to_height) {
    // The same numbers as below: quarters are exact.
    for (std::size_t y = 0; y < at(to_height); ++y) {
      const unsigned *a = from + 2 * y * at(width), *b = a + width;
      for (std::size_t x = 0; x < at(to_width); ++x) {
        const unsigned p[4] = {a[2 * x], a[2 * x + 1], b[2 * x], b[2 * x + 1]};
        unsigned even = 0x00020002u, odd = 0x00020002u;  // two channels each, and what rounds
        for (const unsigned q : p) even += q & 0x00ff00ffu, odd += q >> 8 & 0x00ff00ffu;
        *to++ = (even >> 2 & 0x00ff00ffu) | (odd << 6 & 0xff00ff00u);
      }
    }
    return;
  }
  const auto place = [](int i, int n, int to_n, int& low, int& high) {
    const float x = (static_cast<float>(i) + 0.5f) * static_cast<float>(n) / static_cast<float>(to_n) - 0.5f;
    low = static_cast<int>(std::floor(x));
    const float part = x - static_cast<float>(low);
    high = std::min(low + 1, n - 1);
    low = std::max(low, 0);
    return part;
  };
  for (int y = 0; y < to_height; ++y) {
    int ya = 0, yb = 0;
    const float fy = place(y, height, to_height, ya, yb);
    for (int x = 0; x < to_width; ++x) {
      int xa = 0, xb = 0;
      const float fx = place(x, width, to_width, xa, xb);
      unsigned pixel = 0;
      for (unsigned c = 0; c < 4; ++c) {
        const auto texel = [&](int tx, int ty) {
          return static_cast<float>(channel(from[at(ty) * at(width) + at(tx)], c));
        };
        const float low = texel(xa, ya) + fx * (texel(xb, ya) - texel(xa, ya));
        const float high = texel(xa, yb) + fx * (texel(xb, yb) - texel(xa, yb));
        pixel |= static_cast<unsigned>(low + fy * (high - low) + 0.5f) << (8 * c);
      }
      *to++ = pixel;
    }
  }
}

}  // namespace

TextureRecord TracedTexture::record() const {
  TextureRecord r{};
  r.cube = cube;
  r.levels = static_cast<int>(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    r.width[i] = width[i], r.height[i] = height[i], r.first[i] = first[i];
  }
  r.pixel = pixel.data();
  return r;
}

TracedTexture trace_texture(const sim::VisualTexture& texture) {
  TracedTexture out;
  out.cube = texture.kind != sim::VisualTexture::Kind::k2d;
  const int channels = texture.channels, width = texture.width;
  const int height = out.cube ? width : texture.height;
  if (width <= 0 || height <= 0 || (channels != 3 && channels != 4)) return out;
  std::array<unsigned char, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto byte = static_cast<unsigned char>(i);
    table[i] = texture.srgb ? linear_of_srgb(byte) : byte;
  }
  const std::size_t faces = out.cube ? 6 : 1;
  std::size_t pixels = 0;
  for (int w = width, h = height;; w = std::max(1, w / 2), h = std::max(1, h / 2)) {
    out.first.push_back(static_cast<int>(pixels));
    out.width.push_back(w), out.height.push_back(h);
    pixels += faces * at(w) * at(h);
    if ((w == 1 && h == 1) || out.first.size() == kMostLevels) break;
  }
  out.pixel.reserve(pixels);
  // A square stands for all six faces. What a file lacks is white.
  const bool one_for_all = out.cube && texture.height == texture.width;
  const std::size_t area = at(width) * at(height), there = texture.pixels.size() / at(channels);
  for (std::size_t f = 0; f < faces; ++f) {
    const std::size_t begin = one_for_all ? 0 : f * area;
    const unsigned char* from = texture.pixels.data();
    for (std::size_t i = begin; i < std::min(begin + area, there); ++i) {
      const unsigned char* p = from + i * at(channels);
      out.pixel.push_back(unsigned{table[p[0]]} | unsigned{table[p[1]]} << 8 | unsigned{table[p[2]]} << 16 |
                          (channels == 4 ? unsigned{p[3]} : 255u) << 24);
    }
    out.pixel.resize((f + 1) * area, ~0u);
  }
  out.pixel.resize(pixels);
  for (std::size_t level = 1; level < out.first.size(); ++level) {
    const int w = out.width[level - 1], h = out.height[level - 1], to_w = out.width[level], to_h = out.height[level];
    for (std::size_t f = 0; f < faces; ++f) {
      halve(&out.pixel[at(out.first[level - 1]) + f * at(w) * at(h)], w, h,
            &out.pixel[at(out.first[level]) + f * at(to_w) * at(to_h)], to_w, to_h);
    }
  }
  return out;
}

}  // namespace cohort::render
