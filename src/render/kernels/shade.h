/// The colour of what a packet of rays has met.
#pragma once
#include "render/kernels/trace.h"

namespace cohort::render {

/// Where pictures are seen from, or the camera's mirror image.
template <class V>
struct Eye {
  Vector3<V> place;
  Vector3<V> step_x, step_y;  ///< of the ray from a pixel to the next: of its direction, or an orthographic's origin
};

/// Texture coordinates of a shape's surface, once around it: those of MuJoCo's unit shapes (sphere, halfSphere,
/// cylinder, disk and makeBuiltin in render_context.c).
template <class V>
COHORT_LANE void around_shape(const InstanceRecord& g, const Vector3<V>& at, const V& part, V& u, V& v) {
  const V zero(0.0f), half(0.5f), one(1.0f), turn(0.159154943f), quarter(0.636619772f);
  const auto shape = static_cast<sim::VisualShape>(g.shape);
  if (shape == sim::VisualShape::kBox) {
    const V x = at.x * V(1.0f / g.size[0]), y = at.y * V(1.0f / g.size[1]), z = at.z * V(1.0f / g.size[2]);
    const auto x_side = part < V(2.0f);
    const auto z_side = part > V(3.0f);
    u = fma(select(x_side, y, x), half, half);
    v = fma(select(z_side, y, z), -half, half);
    return;
  }
  const V inverse(1.0f / g.size[0]);
  const V angle =
      sim::atan2(at.y * V(1.0f / (shape == sim::VisualShape::kEllipsoid ? g.size[1] : g.size[0])), at.x * inverse) *
      turn;
  u = select(angle < zero, angle + one, angle);
  if (shape == sim::VisualShape::kCylinder) {
    const auto cap = part > zero;
    u = select(cap, fma(at.x * inverse, half, half), u);
    v = select(cap, fma(at.y * inverse, half, half), fma(at.z * V(1.0f / g.size[1]), -half, half));
    return;
  }
  if (shape == sim::VisualShape::kCapsule) {
    const V end = clip(at.z, V(-g.size[1]), V(g.size[1])), over = at.z - end;
    const V flat = sqrt(fma(at.x, at.x, at.y * at.y));
    const V rise = sim::atan2(abs(over), flat) * quarter;
    v = select(over > zero, one - rise, select(over < zero, rise, fma(at.z * V(1.0f / g.size[1]), -half, half)));
    return;
  }
  const Vector3<V> p{at.x * inverse, at.y * V(1.0f / g.size[1]), at.z * V(1.0f / g.size[2])};
  v = fma(sim::atan2(p.z, sqrt(fma(p.x, p.x, p.y * p.y))), -half * quarter, half);
}

/// Texture colours of the lanes; 1 without a texture.
template <class L>
COHORT_KERNEL void texture_of(const FrameRecord& f, const InstanceRecord& g, const Surface<typename L::V>& s,
                              const Ray<typename L::V>& local, const Eye<typename L::V>& eye,
                              const Entry<typename L::V>& e, unsigned lanes, Colour<typename L::V>& colour,
                              typename L::V& alpha) {
  using V = typename L::V;
  constexpr int kWidth = L::kWidth;
  // The change of the point on the face's plane from a pixel to the next.
  const auto change = [&](const Vector3<V>& step) {
    Vector3<V> w = turned_back(g.rot, step);
    if (!f.orthographic) w = scaled(w, e.t);
    const V across = dot(s.face, local.direction);
    return along(w, -(dot(s.face, w) / not_zero(across)), local.direction);
  };
  const Vector3<V> dx = change(eye.step_x), dy = change(eye.step_y);
  alignas(64) float a[9][kWidth] = {}, out[4][kWidth];
  const auto mapping = static_cast<Mapping>(g.mapping);
  if (mapping == Mapping::kCube) {
    V z = s.local.z * V(g.scale[2]);
    if (static_cast<sim::VisualShape>(g.shape) == sim::VisualShape::kCapsule) {
      // MuJoCo's ends are half spheres moved up and down by 1.
      const V over = (abs(s.local.z) - V(g.size[1])) * V(1.0f / g.size[0]);
      const V end = select(s.local.z < V(0.0f), -over - V(1.0f), over + V(1.0f)) * V(g.scale[2] * g.size[1]);
      z = select(over > V(0.0f), end, z);
    }
    store(a[0], s.local.x * V(g.scale[0])), store(a[1], s.local.y * V(g.scale[1])), store(a[2], z);
    store(a[3], dx.x * V(g.scale[0])), store(a[4], dx.y * V(g.scale[1])), store(a[5], dx.z * V(g.scale[2]));
    store(a[6], dy.x * V(g.scale[0])), store(a[7], dy.y * V(g.scale[1])), store(a[8], dy.z * V(g.scale[2]));
  } else if (mapping == Mapping::kAround) {
    V u, v, ux, vx, uy, vy;
    around_shape(g, s.local, e.part, u, v);
    around_shape(g, s.local + dx, e.part, ux, vx);
    around_shape(g, s.local + dy, e.part, uy, vy);
    // Where u comes round it jumps by 1.
    const auto step = [](const V& d) { return d - sim::round(d); };
    const V su(g.scale[0]), sv(g.scale[1]);
    store(a[0], u * su), store(a[1], v * sv);
    store(a[2], step(ux - u) * su), store(a[3], step(uy - u) * su);
    store(a[4], (vx - v) * sv), store(a[5], (vy - v) * sv);
  } else if (mapping == Mapping::kTexcoord) {
    store(a[0], s.s), store(a[1], s.t);
    store(a[2], dot(s.s_by, dx)), store(a[3], dot(s.s_by, dy));
    store(a[4], dot(s.t_by, dx)), store(a[5], dot(s.t_by, dy));
  } else {
    store(a[0], fma(s.local.x, V(g.scale[0]), V(-0.5f))), store(a[1], fma(s.local.y, V(g.scale[1]), V(-0.5f)));
    store(a[2], dx.x * V(g.scale[0])), store(a[3], dy.x * V(g.scale[0]));
    store(a[4], dx.y * V(g.scale[1])), store(a[5], dy.y * V(g.scale[1]));
  }
  for (auto& row : out) {
    for (float& x : row) x = 1;
  }
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const int i = sim::lowest_bit(left);
    Texel texel;
    if (mapping == Mapping::kCube) {
      const float d[3] = {a[0][i], a[1][i], a[2][i]}, x[3] = {a[3][i], a[4][i], a[5][i]},
                  y[3] = {a[6][i], a[7][i], a[8][i]};
      texel = texture_cube(*g.texture, d, x, y);
    } else {
      const float ds[2] = {a[2][i], a[3][i]}, dt[2] = {a[4][i], a[5][i]};
      texel = texture_2d(*g.texture, a[0][i], a[1][i], ds, dt);
    }
    for (int c = 0; c < 4; ++c) out[c][i] = texel.c[c];
  }
  const auto row = [](const float* p) { return load_anywhere(p, static_cast<V*>(nullptr)); };
  colour = {row(out[0]), row(out[1]), row(out[2])};
  alpha = row(out[3]);
}

template <class V>
struct Shaded {
  Colour<V> colour;
  V alpha;
  Vector3<V> normal;  ///< in the world
};

/// Light that a shadow may keep away, of every light that has shadows.
template <class L, class Eight>
COHORT_KERNEL void add_shadowed_lights(const FrameRecord& f, const InstanceRecord& g, const float* rgb,
                                       const Surface<typename L::V>& s, const Vector3<typename L::V>& world,
                                       const Eye<typename L::V>& eye, const Colour<typename L::V>& texture,
                                       unsigned lanes, Colour<typename L::V>& colour) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int i = 0; i < f.lights; ++i) {
    const LightRecord& light = f.light[i];
    if (!light.shadow) continue;
    Colour<V> sum{zero, zero, zero};
    for (int k = 0; k < s.corners; ++k) {
      add_scaled(sum, s.weight[k], clipped(light_of(light, g, rgb, s.point[k], s.normal_at[k], eye.place)));
    }
    // From a little above the surface, so that it does not shade itself.
    const Vector3<V> out = turned(g.rot, s.face);
    const V lift = V(1e-4f) * (abs(world.x) + abs(world.y) + abs(world.z)) + V(1e-5f);
    const Vector3<V> from = along(world, lift, out);
    Ray<V> ray{from, {V(-light.dir[0]), V(-light.dir[1]), V(-light.dir[2])}};
    V most(kMiss * 0.5f);
    if (!light.directional) {
      ray.direction = spread<V>(light.pos) - from;
      most = V(1.0f);
    }
    const unsigned asked = lanes & lane_bits(sum.r + sum.g + sum.b > zero);
    if (asked == 0) continue;
    const unsigned lit = lit_lanes<L, Eight>(f, ray, most, asked);
    const auto seen = lanes_of(lit, static_cast<typename L::M*>(nullptr));
    colour.r = colour.r + select(seen, sum.r * texture.r, zero);
    colour.g = colour.g + select(seen, sum.g * texture.g, zero);
    colour.b = colour.b + select(seen, sum.b * texture.b, zero);
  }
}

/// Colour, alpha and normal of the lanes that have met this instance. dim: what a mirror leaves of its colour; a mirror
/// image has no shadows, as in MuJoCo's.
template <class L, class Eight>
COHORT_KERNEL void shade(const FrameRecord& f, const InstanceRecord& g, const Ray<typename L::V>& world,
                         const Entry<typename L::V>& e, const Eye<typename L::V>& eye, unsigned lanes, float dim,
                         bool shadows, bool colours, Shaded<typename L::V>& out) {
  using V = typename L::V;
  const Ray<V> local = to_local(g, world);
  const Vector3<V> place = along(world.origin, e.t, world.direction);
  Surface<V> s;
  find_surface<L>(g, static_cast<float>(f.quads), local, place, e, lanes, s);
  out.normal = s.normal;
  if (!colours) return;
  const float rgb[3] = {g.rgba[0] * dim, g.rgba[1] * dim, g.rgba[2] * dim};
  const V zero(0.0f), one(1.0f);
  Colour<V> sum{zero, zero, zero};
  for (int k = 0; k < s.corners; ++k) {
    add_scaled(sum, s.weight[k], light_at(f, g, rgb, s.point[k], s.normal_at[k], eye.place, shadows));
  }
  Colour<V> texture{one, one, one};
  out.alpha = V(g.rgba[3]);
  if (static_cast<Mapping>(g.mapping) != Mapping::kNone) {
    V texture_alpha;
    texture_of<L>(f, g, s, local, eye, e, lanes, texture, texture_alpha);
    out.alpha = out.alpha * texture_alpha;
  }
  out.colour = {sum.r * texture.r, sum.g * texture.g, sum.b * texture.b};
  if (shadows) add_shadowed_lights<L, Eight>(f, g, rgb, s, place, eye, texture, lanes, out.colour);
  out.colour = clipped(out.colour);
}

/// Colours of all lanes that have met something, instance by instance.
template <class L, class Eight>
COHORT_KERNEL void shade_hits(const FrameRecord& f, const Ray<typename L::V>& world, const Hit<typename L::V>& hit,
                              const Eye<typename L::V>& eye, unsigned lanes, float dim, bool shadows, bool colours,
                              Shaded<typename L::V>& out) {
  using V = typename L::V;
  const V zero(0.0f);
  out = {{zero, zero, zero}, V(1.0f), {zero, zero, zero}};
  unsigned left = lanes & lane_bits(hit.instance >= zero);
  while (left != 0) {
    const float number = get_lane(hit.instance, sim::lowest_bit(left));
    const auto own = hit.instance == V(number);
    const unsigned mine = left & lane_bits(own);
    left &= ~mine;
    Shaded<V> one;
    shade<L, Eight>(f, f.instance[static_cast<int>(number)], world, hit.entry, eye, mine, dim, shadows, colours, one);
    const auto mask = lanes_of(mine, static_cast<typename L::M*>(nullptr));
    out.normal = select(mask, one.normal, out.normal);
    if (!colours) continue;
    out.colour.r = select(mask, one.colour.r, out.colour.r);
    out.colour.g = select(mask, one.colour.g, out.colour.g);
    out.colour.b = select(mask, one.colour.b, out.colour.b);
  }
}

}  // namespace cohort::render
