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
  const V zero(0.0f);
  const auto mine = lanes_of(lanes, static_cast<typename L::M*>(nullptr));
  // Turned by 90 degrees around x. Lanes that are not asked for may look anywhere that exists.
  const auto turned_up = [&](const Vector3<V>& d) { return Vector3<V>{d.x, d.z, -d.y}; };
  Vector3<V> x = turned_up(eye.step_x), y = turned_up(eye.step_y);
  if (f.orthographic) x = y = {zero, zero, zero};
  const Vector3<V> ahead{zero, zero, V(1.0f)};
  const Texels<V> t = texture_cube<L>(*f.sky, select(mine, turned_up(world.direction), ahead), x, y);
  return {t.c[0], t.c[1], t.c[2]};
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
