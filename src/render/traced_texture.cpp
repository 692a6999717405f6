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

/// Half the size, at least 1; each texel the mean of those around its centre, as a linear filter gives it.
std::vector<unsigned char> halved(const std::vector<unsigned char>& from, int width, int height, int to_width,
                                  int to_height) {
  std::vector<unsigned char> to(4 * at(to_width) * at(to_height));
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
      for (std::size_t c = 0; c < 4; ++c) {
        const auto texel = [&](int tx, int ty) {
          return static_cast<float>(from[4 * (at(ty) * at(width) + at(tx)) + c]);
        };
        const float low = texel(xa, ya) + fx * (texel(xb, ya) - texel(xa, ya));
        const float high = texel(xa, yb) + fx * (texel(xb, yb) - texel(xa, yb));
        to[4 * (at(y) * at(to_width) + at(x)) + c] = static_cast<unsigned char>(low + fy * (high - low) + 0.5f);
      }
    }
  }
  return to;
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
  const std::size_t faces = out.cube ? 6 : 1, area = at(width) * at(height);
  // A square stands for all six faces.
  const bool one_for_all = out.cube && texture.height == texture.width;
  std::vector<std::vector<unsigned char>> face(faces, std::vector<unsigned char>(4 * area, 255));
  for (std::size_t f = 0; f < faces; ++f) {
    const std::size_t first = one_for_all ? 0 : f * area;
    for (std::size_t i = 0; i < area; ++i) {
      for (std::size_t c = 0; c < at(channels); ++c) {
        const std::size_t from = (first + i) * at(channels) + c;
        if (from < texture.pixels.size())
          face[f][4 * i + c] = c < 3 ? table[texture.pixels[from]] : texture.pixels[from];
      }
    }
  }
  for (int w = width, h = height;; w = std::max(1, w / 2), h = std::max(1, h / 2)) {
    out.first.push_back(static_cast<int>(out.pixel.size()));
    out.width.push_back(w), out.height.push_back(h);
    for (const auto& f : face) {
      for (std::size_t i = 0; i < f.size(); i += 4) {
        out.pixel.push_back(f[i] | unsigned{f[i + 1]} << 8 | unsigned{f[i + 2]} << 16 | unsigned{f[i + 3]} << 24);
      }
    }
    if ((w == 1 && h == 1) || out.first.size() == kMostLevels) break;
    const int next_w = std::max(1, w / 2), next_h = std::max(1, h / 2);
    for (auto& f : face) f = halved(f, w, h, next_w, next_h);
  }
  return out;
}

}  // namespace cohort::render
