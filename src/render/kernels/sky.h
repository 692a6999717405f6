/// What is seen where nothing is: the sky's texture on a cylinder around the camera, and haze above the first plane
/// without end (mjr_render and `haze` in MuJoCo's render_gl3.c and render_context.c).
#pragma once
#include "render/kernels/shade.h"

namespace cohort::render {

/// t at which a ray leaves the sky's cylinder: what is farther is behind the sky.
template <class V>
COHORT_LANE V sky_distance(const FrameRecord& f, const Ray<V>& world) {
  const Vector3<V>& d = world.direction;
  const V flat = sqrt(fma(d.x, d.x, d.y * d.y));
  return V(f.sky_reach) / max(max(flat, abs(d.z)), V(1e-12f));
}

template <class L>
COHORT_KERNEL Colour<typename L::V> sky_colour(const FrameRecord& f, const Ray<typename L::V>& world,
                                               const Eye<typename L::V>& eye, unsigned lanes) {
  using V = typename L::V;
  constexpr int kWidth = L::kWidth;
  alignas(64) float a[9][kWidth], out[3][kWidth] = {};
  // Turned by 90 degrees around x.
  const auto put = [&](int at, const Vector3<V>& d) {
    store(a[at], d.x), store(a[at + 1], d.z), store(a[at + 2], -d.y);
  };
  put(0, world.direction), put(3, eye.step_x), put(6, eye.step_y);
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const int i = sim::lowest_bit(left);
    const float d[3] = {a[0][i], a[1][i], a[2][i]};
    float x[3] = {a[3][i], a[4][i], a[5][i]}, y[3] = {a[6][i], a[7][i], a[8][i]};
    if (f.orthographic) {
      for (int k = 0; k < 3; ++k) x[k] = 0, y[k] = 0;
    }
    const Texel texel = texture_cube(*f.sky, d, x, y);
    for (int c = 0; c < 3; ++c) out[c][i] = texel.c[c];
  }
  const auto row = [](const float* p) { return load_anywhere(p, static_cast<V*>(nullptr)); };
  return {row(out[0]), row(out[1]), row(out[2])};
}

/// Blends the haze over a colour where it is nearer than t: a cone between the plane at the sky's foot and the camera's
/// height, clear at both and dense between.
template <class V>
COHORT_LANE void add_haze(const FrameRecord& f, const Ray<V>& world, const V& t, Colour<V>& colour) {
  const Vector3<V>& d = world.direction;
  const V up = dot(d, spread<V>(f.haze_normal));
  const V flat = sqrt(max(dot(d, d) - up * up, V(0.0f)));
  const V down = -up * V(1.0f / f.haze_height);
  const V s = V(1.0f) / max(fma(V(f.haze_ratio), down, flat), V(1e-12f));
  const V h = V(1.0f) - down * s;
  const V turn(f.haze_turn);
  V alpha = select(h < turn, h * V(1.0f / f.haze_turn), (V(1.0f) - h) * V(1.0f / (1.0f - f.haze_turn)));
  const auto seen = (up < V(0.0f)) & (h > V(0.0f)) & (s * V(f.sky_reach) <= t);
  alpha = select(seen, clip(alpha, V(0.0f), V(1.0f)), V(0.0f));
  colour.r = fma(alpha, V(f.haze_rgb[0]) - colour.r, colour.r);
  colour.g = fma(alpha, V(f.haze_rgb[1]) - colour.g, colour.g);
  colour.b = fma(alpha, V(f.haze_rgb[2]) - colour.b, colour.b);
}

}  // namespace cohort::render
