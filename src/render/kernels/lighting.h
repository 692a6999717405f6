/// Light at a point: OpenGL's fixed function (The OpenGL Graphics System, version 2.1, section 2.14.1, "Lighting"), as
/// MuJoCo's classic renderer sets it up: the colour stands for ambient and diffuse, a local viewer, at most eight
/// lights.
#pragma once
#include "render/kernels/records.h"
#include "render/kernels/vector.h"

namespace cohort::render {

template <class V>
struct Colour {
  V r, g, b;
};

template <class V>
COHORT_LANE void add_scaled(Colour<V>& to, V weight, const Colour<V>& c) {
  to.r = fma(weight, c.r, to.r), to.g = fma(weight, c.g, to.g), to.b = fma(weight, c.b, to.b);
}

/// What one light gives at a point with a normal (unit), seen from `eye`.
template <class V>
COHORT_KERNEL Colour<V> light_of(const LightRecord& light, const InstanceRecord& material, const float* rgb,
                                 const Vector3<V>& point, const Vector3<V>& normal, const Vector3<V>& eye) {
  const V zero(0.0f), one(1.0f);
  Vector3<V> to_light = {V(-light.dir[0]), V(-light.dir[1]), V(-light.dir[2])};
  V strength = one;
  if (!light.directional) {
    const Vector3<V> way = spread<V>(light.pos) - point;
    const V square = max(dot(way, way), V(1e-20f)), distance = sqrt(square);
    to_light = scaled(way, one / distance);
    strength =
        one / fma(V(light.attenuation[2]), square, fma(V(light.attenuation[1]), distance, V(light.attenuation[0])));
    if (light.cos_cutoff >= -1.0f) {
      const V along_axis = -dot(to_light, spread<V>(light.dir));
      const auto inside = along_axis >= V(light.cos_cutoff);
      if (!any(inside)) return {zero, zero, zero};
      strength = strength * select(inside, pow(max(along_axis, zero), light.exponent), zero);
    }
  }
  const V facing = max(dot(normal, to_light), zero);
  V shine = zero;
  if (material.specular > 0) {
    const Vector3<V> half = unit(to_light + unit(eye - point));
    shine = select(facing > zero, pow(max(dot(normal, half), zero), material.exponent), zero) * V(material.specular);
  }
  const auto channel = [&](int i) {
    const V dull = fma(facing, V(light.diffuse[i]), V(light.ambient[i])) * V(rgb[i]);
    return strength * fma(shine, V(light.specular[i]), dull);
  };
  return {channel(0), channel(1), channel(2)};
}

template <class V>
COHORT_LANE Colour<V> clipped(const Colour<V>& c) {
  const V zero(0.0f), one(1.0f);
  return {clip(c.r, zero, one), clip(c.g, zero, one), clip(c.b, zero, one)};
}

/// All lights but those that are drawn with shadows, when `without_shadowed`; at most 1 a channel, as a vertex's
/// colour.
template <class V>
COHORT_LANE Colour<V> light_at(const FrameRecord& f, const InstanceRecord& material, const float* rgb,
                               const Vector3<V>& point, const Vector3<V>& normal, const Vector3<V>& eye,
                               bool without_shadowed) {
  const float own = material.emission + f.global_ambient;
  Colour<V> sum{V(own * rgb[0]), V(own * rgb[1]), V(own * rgb[2])};
  for (int i = 0; i < f.lights; ++i) {
    if (without_shadowed && f.light[i].shadow) continue;
    add_scaled(sum, V(1.0f), light_of(f.light[i], material, rgb, point, normal, eye));
  }
  return clipped(sum);
}

}  // namespace cohort::render
