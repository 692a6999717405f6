/// Colours of textures: linear between texels and between levels of half the size (OpenGL 2.1, sections 3.8.8 and
/// 3.8.9). Loops over arrays of the lanes' width are left to the compiler, which makes vectors of them.
#pragma once
#include "render/kernels/records.h"
#include "render/kernels/vector.h"

namespace cohort::render {

template <class V>
struct Texels {
  V c[4];  ///< red, green, blue, alpha; 0 to 1
};

template <class L>
COHORT_LANE typename L::V load_row(const float* p) {
  return load_anywhere(p, static_cast<typename L::V*>(nullptr));
}

/// Between the four texels around (s, t) in [0, 1] of a face and a level of each lane. repeat: the picture goes on at
/// its other side; otherwise its edge does.
template <class L>
COHORT_KERNEL Texels<typename L::V> between_texels(const TextureRecord& texture, const typename L::V& level,
                                                   const typename L::V& face, const typename L::V& s,
                                                   const typename L::V& t, bool repeat) {
  using V = typename L::V;
  constexpr int kWidth = L::kWidth;
  alignas(64) float number[kWidth], width[kWidth], height[kWidth];
  alignas(64) int first[kWidth], row[kWidth], at[4][kWidth];
  alignas(64) unsigned word[4][kWidth];
  store(number, level);
  for (int i = 0; i < kWidth; ++i) {
    const int n = static_cast<int>(number[i]);
    width[i] = static_cast<float>(texture.width[n]), height[i] = static_cast<float>(texture.height[n]);
    row[i] = texture.width[n];
    first[i] = texture.first[n];
  }
  store(number, face);
  for (int i = 0; i < kWidth; ++i) first[i] += static_cast<int>(number[i]) * row[i] * row[i];
  const V zero(0.0f), one(1.0f), w = load_row<L>(width), h = load_row<L>(height);
  const V x = fma(s, w, V(-0.5f)), y = fma(t, h, V(-0.5f));
  const V x0 = floor_lanes(x), y0 = floor_lanes(y), fx = x - x0, fy = y - y0;
  const auto place = [&](const V& i, const V& n) {
    if (!repeat) return clip(i, zero, n - one);
    return select(i < zero, i + n, select(i >= n, i - n, i));
  };
  alignas(64) float xa[kWidth], xb[kWidth], ya[kWidth], yb[kWidth];
  store(xa, place(x0, w)), store(xb, place(x0 + one, w));
  store(ya, place(y0, h)), store(yb, place(y0 + one, h));
  for (int i = 0; i < kWidth; ++i) {
    const int a = first[i] + static_cast<int>(ya[i]) * row[i], b = first[i] + static_cast<int>(yb[i]) * row[i];
    at[0][i] = a + static_cast<int>(xa[i]), at[1][i] = a + static_cast<int>(xb[i]);
    at[2][i] = b + static_cast<int>(xa[i]), at[3][i] = b + static_cast<int>(xb[i]);
  }
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < kWidth; ++i) word[k][i] = texture.pixel[at[k][i]];
  }
  Texels<V> r;
  for (int c = 0; c < 4; ++c) {
    alignas(64) float value[4][kWidth];
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < kWidth; ++i) value[k][i] = static_cast<float>(static_cast<int>(word[k][i] >> (8 * c) & 255u));
    }
    const V aa = load_row<L>(value[0]), ab = load_row<L>(value[1]), ba = load_row<L>(value[2]),
            bb = load_row<L>(value[3]);
    const V low = fma(fx, ab - aa, aa), high = fma(fx, bb - ba, ba);
    r.c[c] = fma(fy, high - low, low) * V(1.0f / 255.0f);
  }
  return r;
}

/// change: the largest change of a coordinate between neighbouring pixels, in texels of the first level: it says which
/// levels, and how much of the second.
template <class L>
COHORT_LANE Texels<typename L::V> between_levels(const TextureRecord& texture, const typename L::V& change,
                                                 const typename L::V& face, const typename L::V& s,
                                                 const typename L::V& t, bool repeat) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f), most(static_cast<float>(texture.levels - 1));
  const auto smaller = change > one;
  const V exact = min(select(smaller, log(select(smaller, change, one)) * V(1.44269504f), zero), most);
  const V first = floor_lanes(exact), part = exact - first;
  Texels<V> r = between_texels<L>(texture, first, face, s, t, repeat);
  if (!any(part > zero)) return r;
  const Texels<V> second = between_texels<L>(texture, min(first + one, most), face, s, t, repeat);
  for (int c = 0; c < 4; ++c) r.c[c] = fma(part, second.c[c] - r.c[c], r.c[c]);
  return r;
}

/// s, t and how they change from a pixel to the next in x and in y.
template <class L>
COHORT_LANE Texels<typename L::V> texture_2d(const TextureRecord& texture, const typename L::V& s,
                                             const typename L::V& t, const typename L::V& s_x, const typename L::V& s_y,
                                             const typename L::V& t_x, const typename L::V& t_y) {
  using V = typename L::V;
  const V w(static_cast<float>(texture.width[0])), h(static_cast<float>(texture.height[0]));
  const V change = max(max(abs(s_x), abs(s_y)) * w, max(abs(t_x), abs(t_y)) * h);
  // Of numbers so large that no whole ones are left between them nothing is meant, but they have to look up something.
  const auto part = [](const V& a) { return clip(a - floor_lanes(a), V(0.0f), V(1.0f)); };
  return between_levels<L>(texture, change, V(0.0f), part(s), part(t), true);
}

/// A direction and its changes. Faces as OpenGL 2.1, table 3.21.
template <class L>
COHORT_LANE Texels<typename L::V> texture_cube(const TextureRecord& texture, const Vector3<typename L::V>& d,
                                               const Vector3<typename L::V>& dx, const Vector3<typename L::V>& dy) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f), half(0.5f);
  const V ax = abs(d.x), ay = abs(d.y), az = abs(d.z);
  const auto by_x = (ax >= ay) & (ax >= az);
  const auto by_y = flip(by_x) & (ay >= az);
  // The axis that the face lies on, and those that run along s and t, of any vector.
  const auto along_axis = [&](const Vector3<V>& a) { return select(by_x, a.x, select(by_y, a.y, a.z)); };
  const auto negative = along_axis(d) < zero;
  const V sign = select(negative, -one, one);
  const auto along_s = [&](const Vector3<V>& a) { return select(by_x, -(sign * a.z), select(by_y, a.x, sign * a.x)); };
  const auto along_t = [&](const Vector3<V>& a) { return select(by_y, sign * a.z, -a.y); };
  const V face = select(by_x, zero, select(by_y, V(2.0f), V(4.0f))) + select(negative, one, zero);
  const V inverse = one / max(abs(along_axis(d)), V(1e-20f));
  const V s = along_s(d) * inverse, t = along_t(d) * inverse;
  const auto change = [&](const Vector3<V>& by) {
    const V major = sign * along_axis(by);
    return max(abs((along_s(by) - s * major) * inverse), abs((along_t(by) - t * major) * inverse));
  };
  const V texels(0.5f * static_cast<float>(texture.width[0]));
  return between_levels<L>(texture, max(change(dx), change(dy)) * texels, face, clip(fma(s, half, half), zero, one),
                           clip(fma(t, half, half), zero, one), false);
}

}  // namespace cohort::render
