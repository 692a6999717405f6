/// Which instance a packet of rays meets first.
#pragma once
#include "render/kernels/surface.h"

namespace cohort::render {

/// Rays of L::kWidth pixels, and the nearest entry that each has found.
template <class V>
struct Hit {
  Entry<V> entry;
  V instance;  ///< its number; -1: none
};

template <class V>
COHORT_LANE Ray<V> to_local(const InstanceRecord& g, const Ray<V>& world) {
  return {turned_back(g.rot, world.origin - spread<V>(g.pos)), turned_back(g.rot, world.direction)};
}

/// The lanes whose rays pass the mesh's box before `most`; the box a little larger, as in meet_mesh.
template <class V>
COHORT_LANE unsigned pass_box(const MeshRecord& mesh, const Ray<V>& r, const V& most) {
  V reach = max(max(abs(r.origin.x), abs(r.origin.y)), abs(r.origin.z));
  for (int i = 0; i < 3; ++i) reach = max(reach, V(sim::max(sim::abs(mesh.low[i]), sim::abs(mesh.high[i]))));
  const V pad = reach * V(4e-6f);
  const auto slab = [&](const V& origin, const V& direction, int i, V& in, V& out) {
    const V inverse = V(1.0f) / not_zero(direction);
    const V a = (V(mesh.low[i]) - pad - origin) * inverse, b = (V(mesh.high[i]) + pad - origin) * inverse;
    in = max(in, min(a, b)), out = min(out, max(a, b));
  };
  V in(0.0f), out = most;
  slab(r.origin.x, r.direction.x, 0, in, out);
  slab(r.origin.y, r.direction.y, 1, in, out);
  slab(r.origin.z, r.direction.z, 2, in, out);
  return lane_bits(in <= out * V(1.000002f));
}

/// Where the rays enter the instance in (from, most] of each lane. both: a mesh's triangles from behind too.
/// lanes: those that want to know.
template <class L, class Eight>
COHORT_LANE Entry<typename L::V> enter_instance(const InstanceRecord& g, const Ray<typename L::V>& local,
                                                const typename L::V& from, const typename L::V& most, unsigned lanes,
                                                bool both) {
  using V = typename L::V;
  switch (static_cast<sim::VisualShape>(g.shape)) {
    case sim::VisualShape::kPlane: {
      Entry<V> e = enter_plane(local, g.size);
      const V side = g.behind ? -local.direction.z : local.direction.z;
      if (!both) e.t = select(side < V(0.0f), e.t, V(kMiss));
      return e;
    }
    case sim::VisualShape::kSphere:
    case sim::VisualShape::kEllipsoid:
      return enter_ellipsoid(local, g.size);
    case sim::VisualShape::kCapsule:
      return enter_capsule(local, g.size[0], g.size[1]);
    case sim::VisualShape::kCylinder:
      return enter_cylinder(local, g.size[0], g.size[1]);
    case sim::VisualShape::kBox:
      return enter_box(local, g.size);
    default:
      break;
  }
  constexpr int kWidth = L::kWidth;
  if (g.mesh->node != nullptr) lanes &= pass_box(*g.mesh, local, most);
  const V none(kMiss), zero(0.0f);
  if (lanes == 0) return {none, zero, zero, zero};
  alignas(64) float t[kWidth], part[kWidth], u[kWidth], v[kWidth];
  for (int i = 0; i < kWidth; ++i) t[i] = kMiss, part[i] = 0, u[i] = 0, v[i] = 0;
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const int i = sim::lowest_bit(left);
    const float origin[3] = {get_lane(local.origin.x, i), get_lane(local.origin.y, i), get_lane(local.origin.z, i)};
    const float direction[3] = {get_lane(local.direction.x, i), get_lane(local.direction.y, i),
                                get_lane(local.direction.z, i)};
    const TriangleHit hit =
        meet_mesh<Eight>(*g.mesh, origin, direction, get_lane(from, i), get_lane(most, i), both, both);
    if (hit.triangle < 0) continue;
    t[i] = hit.t, part[i] = static_cast<float>(hit.triangle), u[i] = hit.u, v[i] = hit.v;
  }
  const auto row = [](const float* p) { return load_anywhere(p, static_cast<V*>(nullptr)); };
  return {row(t), row(part), row(u), row(v)};
}

/// The lanes whose rays pass the sphere around the instance.
template <class V>
COHORT_LANE unsigned near_instance(const InstanceRecord& g, const Ray<V>& world) {
  if (g.radius < 0) return ~0u;
  const Vector3<V> way = spread<V>(g.middle) - world.origin;
  const V a = dot(world.direction, world.direction), along_ray = dot(way, world.direction);
  // The square of the distance, times a; a little slack for rounding.
  const V distance = fma(dot(way, way), a, -(along_ray * along_ray));
  const V slack = dot(way, way) * a * V(1e-5f);
  return lane_bits(distance <= fma(V(g.radius * g.radius * 1.0001f), a, slack));
}

/// Of two instances at one place the later one counts, as OpenGL's comparison `at least` in MuJoCo's order.
template <class L, class Eight>
COHORT_LANE void meet_instance(const FrameRecord& f, int number, const Ray<typename L::V>& world,
                               const typename L::V& from, unsigned lanes, Hit<typename L::V>& hit) {
  using V = typename L::V;
  const InstanceRecord& g = f.instance[number];
  lanes &= near_instance(g, world);
  if ((lanes & ((L::kWidth == 32 ? 0u : 1u << L::kWidth) - 1u)) == 0) return;
  const Ray<V> local = to_local(g, world);
  const Entry<V> e = enter_instance<L, Eight>(g, local, from, hit.entry.t, lanes, false);
  const V number_lane(static_cast<float>(number));
  const auto nearer = (e.t < hit.entry.t) | ((e.t == hit.entry.t) & (number_lane > hit.instance));
  const auto taken =
      nearer & (e.t >= from) & (e.t <= V(f.farthest)) & lanes_of(lanes, static_cast<typename L::M*>(nullptr));
  hit.entry.t = select(taken, e.t, hit.entry.t);
  hit.entry.part = select(taken, e.part, hit.entry.part);
  hit.entry.u = select(taken, e.u, hit.entry.u);
  hit.entry.v = select(taken, e.v, hit.entry.v);
  hit.instance = select(taken, number_lane, hit.instance);
}

template <class V>
COHORT_LANE Hit<V> no_hit() {
  return {{V(kMiss), V(0.0f), V(0.0f), V(0.0f)}, V(-1.0f)};
}

/// The lanes whose way to the light is free: from `origin` along `direction`, t in (0, most).
template <class L, class Eight>
COHORT_KERNEL unsigned lit_lanes(const FrameRecord& f, const Ray<typename L::V>& ray, const typename L::V& most,
                                 unsigned lanes) {
  using V = typename L::V;
  for (int i = 0; i < f.instances && lanes != 0; ++i) {
    const InstanceRecord& g = f.instance[i];
    if (!g.casts_shadow) continue;
    const unsigned near = lanes & near_instance(g, ray);
    if (near == 0) continue;
    const Entry<V> e = enter_instance<L, Eight>(g, to_local(g, ray), V(0.0f), most, near, true);
    lanes &= ~(near & lane_bits((e.t > V(0.0f)) & (e.t < most)));
  }
  return lanes;
}

}  // namespace cohort::render
