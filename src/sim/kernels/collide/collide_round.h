/// Narrow phases of spheres with boxes and cylinders, and of planes with ellipsoids and cylinders, over lanes; and the
/// choice among all that lanes compute.
#pragma once
#include "sim/kernels/collide/collide.h"

namespace cohort::sim {

/// A sphere and a box: along the shortest way, or out through the nearest face when the centre is inside.
template <class V, class S>
COHORT_KERNEL void sphere_box(ContactPoint<V>& out, const PairPose<V>& p, S radius, const S* size) {
  const V zero(0.0f), one(1.0f), half(0.5f), r(radius);
  V c[3], d[3], inside[3];
  for (int i = 0; i < 3; ++i) d[i] = p.pos1[i] - p.pos2[i];
  rotate_back(c, p.rot2, d);
  for (int i = 0; i < 3; ++i) inside[i] = clip(c[i], V(-size[i]), V(size[i])), d[i] = inside[i] - c[i];
  const V far = sqrt(dot3(d, d));
  const auto outside = far > V(1e-12f);
  const V inverse = one / select(outside, far, one);
  // The nearest face: the lower ones first, as MuJoCo looks at them.
  V closest(S(2.0f) * (size[0] + size[1] + size[2])), normal[3] = {zero, zero, zero};
  for (int k = 0; k < 6; ++k) {
    const V way = abs(V(k % 2 ? size[k / 2] : -size[k / 2]) - c[k / 2]);
    const auto nearer = way < closest;
    closest = select(nearer, way, closest);
    for (int i = 0; i < 3; ++i) normal[i] = select(nearer, V(i != k / 2 ? 0.0f : k % 2 ? -1.0f : 1.0f), normal[i]);
  }
  V pos[3];
  for (int i = 0; i < 3; ++i) {
    const V n = d[i] * inverse;
    const V surface = fma(r, n, c[i]);
    pos[i] = select(outside, half * (inside[i] + surface), fma(half * (r - closest), normal[i], c[i]));
    normal[i] = select(outside, n, normal[i]);
  }
  out.dist = select(outside, far, -closest) - r;
  rotate(out.pos, p.rot2, pos);
  rotate(out.normal, p.rot2, normal);
  for (int i = 0; i < 3; ++i) out.pos[i] += p.pos2[i], out.hint[i] = zero;
}

/// A sphere and a cylinder: with its side, a cap, or the rim.
template <class V, class S>
COHORT_KERNEL void sphere_cylinder(ContactPoint<V>& out, const PairPose<V>& p, S radius, const S* size) {
  const V zero(0.0f), one(1.0f), R(size[0]), height(size[1]);
  V axis[3], d[3], across[3];
  for (int i = 0; i < 3; ++i) axis[i] = p.rot2[3 * i + 2], d[i] = p.pos1[i] - p.pos2[i];
  const V x = dot3(axis, d);
  for (int i = 0; i < 3; ++i) across[i] = fma(-axis[i], x, d[i]);
  const V squared = dot3(across, across), away = sqrt(squared);
  auto side = abs(x) < height, cap = squared < R * R;
  const auto both = side & cap;
  const auto cap_nearer = height - abs(x) < R - away;
  cap = cap & (flip(both) | cap_nearer);
  side = side & (flip(both) | flip(cap_nearer));
  // A sphere of the cylinder's radius beside it, or a point on the rim.
  const V up = select(x > zero, one, V(-1.0f));
  const V scale = R / select(away > V(1e-12f), away, one);
  V centre[3];
  for (int i = 0; i < 3; ++i) {
    const V beside = axis[i] * x, rim = fma(across[i], scale, axis[i] * (up * height));
    centre[i] = p.pos2[i] + select(side, beside, rim);
  }
  sphere_sphere(out, p.pos1, V(radius), centre, select(side, R, zero));
  // The plane of the cap; its normal turned round, because the plane belongs to the second shape.
  ContactPoint<V> flat;
  V normal[3], at[3];
  for (int i = 0; i < 3; ++i) normal[i] = axis[i] * up, at[i] = fma(normal[i], height, p.pos2[i]);
  plane_point(flat, at, normal, p.pos1, V(radius));
  out.dist = select(cap, flat.dist, out.dist);
  for (int i = 0; i < 3; ++i) {
    out.pos[i] = select(cap, flat.pos[i], out.pos[i]);
    out.normal[i] = select(cap, -flat.normal[i], out.normal[i]);
  }
}

/// A plane and the lowest point of an ellipsoid.
template <class V, class S>
COHORT_KERNEL void plane_ellipsoid(ContactPoint<V>& out, const PairPose<V>& p, const S* size) {
  V normal[3], local[3], d[3];
  for (int i = 0; i < 3; ++i) normal[i] = p.rot1[3 * i + 2], out.hint[i] = V(0.0f);
  rotate_back(local, p.rot2, normal);
  for (int i = 0; i < 3; ++i) local[i] *= V(size[i]);
  const V scale = V(-1.0f) / sqrt(max(dot3(local, local), V(1e-30f)));
  for (int i = 0; i < 3; ++i) local[i] *= scale * V(size[i]);
  rotate(local, p.rot2, local);
  for (int i = 0; i < 3; ++i) local[i] += p.pos2[i], d[i] = local[i] - p.pos1[i];
  out.dist = dot3(d, normal);
  for (int i = 0; i < 3; ++i) {
    out.pos[i] = fma(normal[i], V(-0.5f) * out.dist, local[i]);
    out.normal[i] = normal[i];
  }
}

/// Sine of the angle, a milliradian, below which a cylinder stands flat.
inline constexpr float kStandsFlat = 1e-3f;

/// A plane and a cylinder: the lowest points of both rims, and two more on the lower rim; of one that stands flat, four
/// points of the lower rim that turn with it: those that follow the lowest one would change with every small tilt, and
/// it would not come to rest.
template <class V, class S>
COHORT_KERNEL void plane_cylinder(ContactPoint<V>* out, const PairPose<V>& p, const S* size) {
  const V zero(0.0f), R(size[0]);
  V normal[3], axis[3], d[3], down[3], sideways[3];
  for (int i = 0; i < 3; ++i) {
    normal[i] = p.rot1[3 * i + 2], axis[i] = p.rot2[3 * i + 2], d[i] = p.pos2[i] - p.pos1[i];
  }
  V along = dot3(normal, axis);
  const V towards = select(along > zero, V(-1.0f), V(1.0f));  // the axis points at the plane
  for (int i = 0; i < 3; ++i) axis[i] *= towards;
  along *= towards;
  const V height = dot3(d, normal);
  for (int i = 0; i < 3; ++i) down[i] = fma(axis[i], along, -normal[i]);
  const V squared = dot3(down, down);
  const auto tilted = squared > V(kStandsFlat * kStandsFlat);
  const V scale = R / sqrt(select(tilted, squared, V(1.0f)));
  for (int i = 0; i < 3; ++i) down[i] = select(tilted, down[i] * scale, p.rot2[3 * i] * R);
  const V lowest = dot3(down, normal);
  for (int i = 0; i < 3; ++i) axis[i] *= V(size[1]);
  along *= V(size[1]);
  cross(sideways, down, axis);
  const V wide = select(tilted, V(0.8660254038f), V(1.0f)) * R / sqrt(max(dot3(sideways, sideways), V(1e-30f)));
  // Sideways of the lowest point is level.
  const V rise = select(tilted, zero, wide * dot3(sideways, normal));
  for (int k = 0; k < 4; ++k) {
    // 0: lower rim, 1: upper rim, 2 and 3: a triangle's other corners on the lower rim; or all four on the lower rim.
    const V end = select(tilted, V(k == 1 ? -1.0f : 1.0f), V(1.0f));
    const V share = select(tilted, V(k < 2 ? 1.0f : -0.5f), V(k == 0 ? 1.0f : k == 1 ? -1.0f : 0.0f));
    const V across(k == 2 ? 1.0f : k == 3 ? -1.0f : 0.0f);
    out[k].dist = fma(across, rise, height + end * along + share * lowest);
    for (int i = 0; i < 3; ++i) {
      const V at = p.pos2[i] + fma(end, axis[i], fma(share, down[i], across * wide * sideways[i]));
      out[k].pos[i] = fma(normal[i], V(-0.5f) * out[k].dist, at);
      out[k].normal[i] = normal[i];
      out[k].hint[i] = zero;
    }
  }
}

/// All contacts of a pair; `reach` is margin + gap.
template <class V, class S>
COHORT_KERNEL void narrow_phase(ContactPoint<V>* out, int kernel, const PairPose<V>& p, const S* size1, const S* size2,
                                V reach) {
  V axis[3], end[3], normal[3];
  switch (kernel) {
    case kPlaneSphere:
      for (int i = 0; i < 3; ++i) normal[i] = p.rot1[3 * i + 2];
      plane_point(out[0], p.pos1, normal, p.pos2, V(size2[0]));
      break;
    case kPlaneCapsule:
      for (int i = 0; i < 3; ++i) normal[i] = p.rot1[3 * i + 2], axis[i] = p.rot2[3 * i + 2];
      for (int k = 0; k < 2; ++k) {
        for (int i = 0; i < 3; ++i) end[i] = fma(axis[i], V(k == 0 ? size2[1] : -size2[1]), p.pos2[i]);
        plane_point(out[k], p.pos1, normal, end, V(size2[0]));
        for (int i = 0; i < 3; ++i) out[k].hint[i] = axis[i];
      }
      break;
    case kPlaneBox:
      plane_box(out, p, size2, reach);
      break;
    case kSphereSphere:
      sphere_sphere(out[0], p.pos1, V(size1[0]), p.pos2, V(size2[0]));
      break;
    case kSphereCapsule: {
      V d[3];
      for (int i = 0; i < 3; ++i) axis[i] = p.rot2[3 * i + 2], d[i] = p.pos1[i] - p.pos2[i];
      const V x = clip(dot3(axis, d), V(-size2[1]), V(size2[1]));
      for (int i = 0; i < 3; ++i) end[i] = fma(axis[i], x, p.pos2[i]);
      sphere_sphere(out[0], p.pos1, V(size1[0]), end, V(size2[0]));
      break;
    }
    case kCapsuleCapsule:
      capsule_capsule(out, p, size1, size2);
      break;
    case kPlaneEllipsoid:
      plane_ellipsoid(out[0], p, size2);
      break;
    case kPlaneCylinder:
      plane_cylinder(out, p, size2);
      break;
    case kSphereBox:
      sphere_box(out[0], p, size1[0], size2);
      break;
    case kSphereCylinder:
      sphere_cylinder(out[0], p, size1[0], size2);
      break;
    default:
      break;
  }
}

}  // namespace cohort::sim
