/// The surface where a ray has met an instance: points at which its light is computed, the normal, texture coordinates.
///
/// OpenGL computes light at the corners of triangles and blends the colours between. Meshes, boxes and planes do the
/// same here, on the same triangles; for round shapes, which MuJoCo divides finely, it is computed at the point itself.
#pragma once
#include "render/kernels/lighting.h"
#include "render/kernels/mesh.h"
#include "render/kernels/texture.h"
#include "sim/host/visual_shape.h"

namespace cohort::render {

template <class V>
struct Surface {
  Vector3<V> local;                   ///< the point, in the instance's frame
  Vector3<V> face;                    ///< the geometric normal, in the instance's frame; unit
  Vector3<V> normal;                  ///< the smooth one, in the world; unit
  int corners;                        ///< 1 or 3
  Vector3<V> point[3], normal_at[3];  ///< in the world
  V weight[3];
  V s, t;                 ///< of meshes with texture coordinates
  Vector3<V> s_by, t_by;  ///< their changes along the instance's axes
};

template <class V>
COHORT_LANE Vector3<V> to_world(const InstanceRecord& g, const Vector3<V>& local) {
  return turned(g.rot, local) + spread<V>(g.pos);
}

/// The triangle of a cell of a grid that (a, b) in [0, 1] lies in, of a quadrilateral that OpenGL's drivers divide
/// along one diagonal. The falling one: from (1, 0) to (0, 1).
template <class V>
struct CellTriangle {
  V a[3], b[3], weight[3];
};
template <class V>
COHORT_LANE CellTriangle<V> triangle_of_cell(V a, V b, V falling) {
  // With the rising diagonal, mirrored in a.
  const V zero(0.0f), one(1.0f);
  const auto is_falling = falling > zero;
  const V x = select(is_falling, a, one - a);
  const auto lower = x + b <= one;
  const V ca0 = select(lower, zero, one);
  CellTriangle<V> r;
  const V xa[3] = {ca0, one, zero};
  const V xb[3] = {ca0, zero, one};
  r.weight[1] = select(lower, x, one - b);
  r.weight[2] = select(lower, b, one - x);
  r.weight[0] = one - r.weight[1] - r.weight[2];
  for (int i = 0; i < 3; ++i) {
    r.a[i] = select(is_falling, xa[i], one - xa[i]);
    r.b[i] = xb[i];
  }
  return r;
}

/// Where the cell of a box's face begins, in [-1, 1], and how far into it `at` is.
template <class V>
COHORT_LANE void cell_of_face(V at, float quads, V& begin, V& inside) {
  const V cell = clip(floor_lanes((at + V(1.0f)) * V(0.5f * quads)), V(0.0f), V(quads - 1));
  begin = fma(cell, V(2.0f / quads), V(-1.0f));
  inside = clip((at - begin) * V(0.5f * quads), V(0.0f), V(1.0f));
}

template <class V>
COHORT_LANE void surface_of_box(const InstanceRecord& g, float quads, const V& part, Surface<V>& s) {
  const V zero(0.0f), one(1.0f);
  const auto x_side = part < V(2.0f);
  const auto z_side = part > V(3.0f);
  const V positive = part - V(2.0f) * floor_lanes(part * V(0.5f));
  const V sign = fma(positive, V(2.0f), V(-1.0f));
  s.face = {select(x_side, sign, zero), select(x_side, zero, select(z_side, zero, sign)), select(z_side, sign, zero)};
  s.normal = turned(g.rot, s.face);
  const Vector3<V> at{s.local.x * V(1.0f / g.size[0]), s.local.y * V(1.0f / g.size[1]),
                      s.local.z * V(1.0f / g.size[2])};
  // Along the face: y and z, x and z, x and y.
  V a_begin, a_in, b_begin, b_in;
  cell_of_face(select(x_side, at.y, at.x), quads, a_begin, a_in);
  cell_of_face(select(z_side, at.y, at.z), quads, b_begin, b_in);
  // MuJoCo's order of corners: the sides +x, -y and +z have the falling diagonal.
  const auto y_side = flip(x_side | z_side);
  const V falling = select(y_side, one - positive, positive);
  const CellTriangle<V> cell = triangle_of_cell(a_in, b_in, falling);
  s.corners = 3;
  for (int i = 0; i < 3; ++i) {
    const V a = fma(cell.a[i], V(2.0f / quads), a_begin), b = fma(cell.b[i], V(2.0f / quads), b_begin);
    const Vector3<V> corner{select(x_side, sign, a) * V(g.size[0]),
                            select(x_side, a, select(z_side, b, sign)) * V(g.size[1]),
                            select(z_side, sign, b) * V(g.size[2])};
    s.point[i] = to_world(g, corner);
    s.normal_at[i] = s.normal;
    s.weight[i] = cell.weight[i];
  }
}

/// grid: where the first whole cell begins, a cell's width, where the last one ends; beyond lie cells that are cut.
template <class V>
COHORT_LANE void cell_of_plane(V at, const float* grid, float half, V& begin, V& width) {
  const V first(grid[0]), step(grid[1]), last(grid[2]);
  begin = fma(floor_lanes((at - first) * V(1.0f / grid[1])), step, first);
  width = step;
  if (half > 0) {
    const auto before = at < first, behind = at >= last;
    begin = select(before, V(-half), select(behind, last, begin));
    width = select(before, first + V(half), select(behind, V(half) - last, step));
  }
}

template <class V>
COHORT_LANE void surface_of_plane(const InstanceRecord& g, Surface<V>& s) {
  const V zero(0.0f), one(1.0f);
  s.face = {zero, zero, one};
  s.normal = turned(g.rot, s.face);
  V x, y, width, height;
  cell_of_plane(s.local.x, g.grid[0], g.size[0], x, width);
  cell_of_plane(s.local.y, g.grid[1], g.size[1], y, height);
  const V a = clip((s.local.x - x) / max(width, V(1e-12f)), zero, one);
  const V b = clip((s.local.y - y) / max(height, V(1e-12f)), zero, one);
  const CellTriangle<V> cell = triangle_of_cell(a, b, one);
  s.corners = 3;
  for (int i = 0; i < 3; ++i) {
    const Vector3<V> corner{fma(cell.a[i], width, x), fma(cell.b[i], height, y), zero};
    s.point[i] = to_world(g, corner);
    s.normal_at[i] = s.normal;
    s.weight[i] = cell.weight[i];
  }
}

template <class L>
COHORT_LANE void surface_of_mesh(const InstanceRecord& g, const Entry<typename L::V>& e, unsigned lanes,
                                 Surface<typename L::V>& s) {
  using V = typename L::V;
  constexpr int kWidth = L::kWidth;
  alignas(64) float corner[9][kWidth] = {}, normal[9][kWidth] = {}, texcoord[6][kWidth] = {};
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const int i = sim::lowest_bit(left);
    const int triangle = static_cast<int>(get_lane(e.part, i));
    for (int k = 0; k < 9; ++k) {
      corner[k][i] = g.mesh->corner[9 * triangle + k];
      normal[k][i] = g.mesh->normal[9 * triangle + k];
    }
    if (g.mesh->texcoord == nullptr) continue;
    for (int k = 0; k < 6; ++k) texcoord[k][i] = g.mesh->texcoord[6 * triangle + k];
  }
  const auto row = [](const float* p) { return load_anywhere(p, static_cast<V*>(nullptr)); };
  const auto corner_of = [&](int k) {
    return Vector3<V>{row(corner[3 * k]), row(corner[3 * k + 1]), row(corner[3 * k + 2])};
  };
  s.corners = 3;
  s.weight[1] = e.u, s.weight[2] = e.v;
  s.weight[0] = V(1.0f) - e.u - e.v;
  Vector3<V> smooth{V(0.0f), V(0.0f), V(0.0f)};
  for (int k = 0; k < 3; ++k) {
    s.point[k] = to_world(g, corner_of(k));
    s.normal_at[k] =
        turned(g.rot, unit(Vector3<V>{row(normal[3 * k]), row(normal[3 * k + 1]), row(normal[3 * k + 2])}));
    smooth = along(smooth, s.weight[k], s.normal_at[k]);
  }
  s.normal = unit(smooth);
  const Vector3<V> e1 = corner_of(1) - corner_of(0), e2 = corner_of(2) - corner_of(0);
  s.face = unit(cross(e1, e2));
  if (g.mesh->texcoord == nullptr) return;
  const V s1 = row(texcoord[2]) - row(texcoord[0]), s2 = row(texcoord[4]) - row(texcoord[0]);
  const V t1 = row(texcoord[3]) - row(texcoord[1]), t2 = row(texcoord[5]) - row(texcoord[1]);
  s.s = fma(e.u, s1, fma(e.v, s2, row(texcoord[0])));
  s.t = fma(e.u, t1, fma(e.v, t2, row(texcoord[1])));
  // The change of u and v along a vector w in the triangle: dot(w, dual of the edges).
  const V g11 = dot(e1, e1), g12 = dot(e1, e2), g22 = dot(e2, e2);
  const V det = max(fma(g11, g22, -(g12 * g12)), V(1e-30f));
  const V inverse = V(1.0f) / det;
  const Vector3<V> u_by = scaled(along(scaled(e1, g22), -g12, e2), inverse);
  const Vector3<V> v_by = scaled(along(scaled(e2, g11), -g12, e1), inverse);
  s.s_by = along(scaled(u_by, s1), s2, v_by);
  s.t_by = along(scaled(u_by, t1), t2, v_by);
}

/// local: the ray in the instance's frame. lanes: those that have met it; of the others nothing is meant.
template <class L>
COHORT_LANE void find_surface(const InstanceRecord& g, float quads, const Ray<typename L::V>& local,
                              const Vector3<typename L::V>& world, const Entry<typename L::V>& e, unsigned lanes,
                              Surface<typename L::V>& s) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f);
  s.local = along(local.origin, e.t, local.direction);
  const auto shape = static_cast<sim::VisualShape>(g.shape);
  if (shape == sim::VisualShape::kBox) return surface_of_box(g, quads, e.part, s);
  if (shape == sim::VisualShape::kPlane) return surface_of_plane(g, s);
  if (shape == sim::VisualShape::kMesh) return surface_of_mesh<L>(g, e, lanes, s);
  if (shape == sim::VisualShape::kCapsule) {
    const V end = clip(s.local.z, V(-g.size[1]), V(g.size[1]));
    s.face = unit(Vector3<V>{s.local.x, s.local.y, s.local.z - end});
  } else if (shape == sim::VisualShape::kCylinder) {
    const auto cap = e.part > zero;
    const Vector3<V> side = unit(Vector3<V>{s.local.x, s.local.y, zero});
    s.face = {select(cap, zero, side.x), select(cap, zero, side.y),
              select(cap, select(s.local.z > zero, one, -one), zero)};
  } else {
    s.face =
        unit(Vector3<V>{s.local.x * V(1.0f / (g.size[0] * g.size[0])), s.local.y * V(1.0f / (g.size[1] * g.size[1])),
                        s.local.z * V(1.0f / (g.size[2] * g.size[2]))});
  }
  s.normal = turned(g.rot, s.face);
  s.corners = 1;
  s.point[0] = world;
  s.normal_at[0] = s.normal;
  s.weight[0] = one;
}

}  // namespace cohort::render
