/// Colours of textures: linear between texels and between levels of half the size (OpenGL 2.1, sections 3.8.8 and
/// 3.8.9), one pixel at a time.
#pragma once
#include "render/kernels/records.h"
#include "render/kernels/vector.h"

namespace cohort::render {

struct Texel {
  float c[4];
};

/// a to the power of two's exponent: log2 of a positive number, absolute error below 0.01 (levels are blended by it).
COHORT_LANE float log2_of(float a) {
  return sim::log(a) * 1.44269504f;
}

COHORT_LANE int floor_of(float a) {
  const int i = static_cast<int>(a);
  return static_cast<float>(i) > a ? i - 1 : i;
}

/// i in [0, n), repeated.
COHORT_LANE int wrapped(int i, int n) {
  if (i >= 0 && i < n) return i;
  i %= n;
  return i < 0 ? i + n : i;
}

/// Between the four texels around (x, y), in texels. repeat: the picture goes on at its other side; otherwise its edge
/// does.
COHORT_LANE Texel between_texels(const unsigned char* p, int width, int height, float x, float y, bool repeat) {
  x -= 0.5f, y -= 0.5f;
  const int x0 = floor_of(x), y0 = floor_of(y);
  const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
  int xa, xb, ya, yb;
  if (repeat) {
    xa = wrapped(x0, width), xb = xa + 1 == width ? 0 : xa + 1;
    ya = wrapped(y0, height), yb = ya + 1 == height ? 0 : ya + 1;
  } else {
    xa = x0 < 0 ? 0 : (x0 < width ? x0 : width - 1), xb = x0 + 1 < 0 ? 0 : (x0 + 1 < width ? x0 + 1 : width - 1);
    ya = y0 < 0 ? 0 : (y0 < height ? y0 : height - 1), yb = y0 + 1 < 0 ? 0 : (y0 + 1 < height ? y0 + 1 : height - 1);
  }
  const unsigned char *aa = p + 4 * (ya * width + xa), *ab = p + 4 * (ya * width + xb);
  const unsigned char *ba = p + 4 * (yb * width + xa), *bb = p + 4 * (yb * width + xb);
  Texel r;
  for (int i = 0; i < 4; ++i) {
    const float low = fma(fx, static_cast<float>(ab[i] - aa[i]), static_cast<float>(aa[i]));
    const float high = fma(fx, static_cast<float>(bb[i] - ba[i]), static_cast<float>(ba[i]));
    r.c[i] = fma(fy, high - low, low) * (1.0f / 255.0f);
  }
  return r;
}

/// Which levels, and how much of the second: from the largest change of a coordinate between neighbouring pixels, in
/// texels.
struct Levels {
  int first, second;
  float part;
};
COHORT_LANE Levels levels_of(const TextureRecord& t, float change) {
  const float level = change > 1.0f ? log2_of(change) : 0.0f;
  const float most = static_cast<float>(t.levels - 1);
  const float clamped = level < most ? level : most;
  const int first = static_cast<int>(clamped);
  return {first, first + 1 < t.levels ? first + 1 : first, clamped - static_cast<float>(first)};
}

COHORT_LANE Texel blended(const Texel& a, const Texel& b, float part) {
  Texel r;
  for (int i = 0; i < 4; ++i) r.c[i] = fma(part, b.c[i] - a.c[i], a.c[i]);
  return r;
}

/// s, t and how they change from a pixel to the next in x and in y.
COHORT_LANE Texel texture_2d(const TextureRecord& t, float s, float v, const float* ds, const float* dt) {
  const float w = static_cast<float>(t.width[0]), h = static_cast<float>(t.height[0]);
  const float change = max(max(sim::abs(ds[0]), sim::abs(ds[1])) * w, max(sim::abs(dt[0]), sim::abs(dt[1])) * h);
  const Levels l = levels_of(t, change);
  s -= static_cast<float>(floor_of(s)), v -= static_cast<float>(floor_of(v));
  const auto level = [&](int i) {
    return between_texels(t.pixel[i], t.width[i], t.height[i], s * static_cast<float>(t.width[i]),
                          v * static_cast<float>(t.height[i]), true);
  };
  const Texel first = level(l.first);
  return l.part > 0 ? blended(first, level(l.second), l.part) : first;
}

/// A direction and its changes. Faces as OpenGL 2.1, table 3.21.
COHORT_LANE Texel texture_cube(const TextureRecord& t, const float* d, const float* dx, const float* dy) {
  const float ax = sim::abs(d[0]), ay = sim::abs(d[1]), az = sim::abs(d[2]);
  int axis = 2;
  if (ax >= ay && ax >= az) {
    axis = 0;
  } else if (ay >= az) {
    axis = 1;
  }
  const bool negative = d[axis] < 0;
  const int face = 2 * axis + (negative ? 1 : 0);
  // Which coordinates run along s and t on each face, and which way.
  constexpr int kS[6] = {2, 2, 0, 0, 0, 0}, kT[6] = {1, 1, 2, 2, 1, 1};
  constexpr float kSignS[6] = {-1, 1, 1, 1, 1, -1}, kSignT[6] = {-1, -1, 1, -1, -1, -1};
  const float major = negative ? -d[axis] : d[axis];
  const float inverse = 1.0f / (major > 1e-20f ? major : 1e-20f);
  const float s = kSignS[face] * d[kS[face]] * inverse, v = kSignT[face] * d[kT[face]] * inverse;
  const auto change = [&](const float* by) {
    const float of_major = negative ? -by[axis] : by[axis];
    const float cs = (kSignS[face] * by[kS[face]] - s * of_major) * inverse;
    const float ct = (kSignT[face] * by[kT[face]] - v * of_major) * inverse;
    return max(sim::abs(cs), sim::abs(ct));
  };
  const float texels = 0.5f * static_cast<float>(t.width[0]);
  const Levels l = levels_of(t, max(change(dx), change(dy)) * texels);
  const auto level = [&](int i) {
    const int w = t.width[i];
    return between_texels(t.pixel[i] + 4 * face * w * w, w, w, (0.5f * s + 0.5f) * static_cast<float>(w),
                          (0.5f * v + 0.5f) * static_cast<float>(w), false);
  };
  const Texel first = level(l.first);
  return l.part > 0 ? blended(first, level(l.second), l.part) : first;
}

}  // namespace cohort::render
