/// The height of a height field below a point, over lanes, as the physics sees it: the two triangles of a cell, which
/// share the diagonal from the cell's first corner to the one of the next row and column (kernels/collide/height_field.h;
/// MuJoCo's height fields have the same).
///
///   TerrainView ground = terrain.view();
///   float z = sim::terrain_height(ground, x, y);            // one point
///   Avx2Lane::V z8 = sim::terrain_height(ground, x8, y8);   // eight, with the same bits
///
/// This header and those it includes must not pull in inline functions of the standard library: see lane.h.
#pragma once
#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

/// A height field, of which somebody else owns the heights.
struct TerrainView {
  const float* heights = nullptr;  ///< (rows, cols), row by row; rows along y, columns along x
  int rows = 0, cols = 0;          ///< at least 2 each; rows * cols below 2^31
  float x = 0, y = 0;              ///< m, world: where the first height stands
  float dx = 0, dy = 0;            ///< m between columns, between rows
  float scale = 1, z = 0;          ///< a height is z + scale * heights[...], m
};

/// One point of it.
template <class V>
struct TerrainPoint {
  V height;     ///< m, world
  V normal[3];  ///< unit, upwards
};

namespace terrain_detail {

/// Where a point lies along one axis: the first line of its cell, and the share of the cell beyond it.
template <class V>
struct Along {
  V first, share, inside;  ///< inside: 0 beyond the grid's edge, where the edge's height goes on level, otherwise 1
};
template <class V>
COHORT_LANE Along<V> along(V at, float origin, float step, int n) {
  const V last(static_cast<float>(n - 1)), lines = (at - V(origin)) / V(step);
  const V limited = clip(lines, V(0.0f), last);  // what is no number becomes 0
  const V nearest = round(limited);
  const V below = min(select(nearest > limited, nearest - V(1.0f), nearest), last - V(1.0f));
  const V in = select(lines >= V(0.0f), V(1.0f), V(0.0f)) * select(lines <= last, V(1.0f), V(0.0f));
  return {below, limited - below, in};
}

/// The heights of the corners of each lane's cell: 00, 01 (next column), 10 (next row), 11.
template <class V>
COHORT_LANE void corners(const TerrainView& t, V col, V row, V* out) {
  constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(float));
  alignas(64) float c[kLanes], r[kLanes];
  alignas(64) int at[4][kLanes];
  store(c, col), store(r, row);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int first = static_cast<int>(r[lane]) * t.cols + static_cast<int>(c[lane]);
    at[0][lane] = first, at[1][lane] = first + 1;
    at[2][lane] = first + t.cols, at[3][lane] = first + t.cols + 1;
  }
  V* const type = nullptr;
  for (int k = 0; k < 4; ++k) out[k] = fma(gather(t.heights, at[k], type), V(t.scale), V(t.z));
}

}  // namespace terrain_detail

/// The height, m, at (x, y), m, world. Beyond the grid: of the nearest point of its edge.
template <class V>
COHORT_LANE V terrain_height(const TerrainView& t, V x, V y) {
  const auto u = terrain_detail::along(x, t.x, t.dx, t.cols), v = terrain_detail::along(y, t.y, t.dy, t.rows);
  V h[4];
  terrain_detail::corners(t, u.first, v.first, h);
  const auto over = v.share > u.share;  // the triangle on the next row's side of the diagonal
  const V by_x = select(over, h[3] - h[2], h[1] - h[0]), by_y = select(over, h[2] - h[0], h[3] - h[1]);
  return fma(v.share, by_y, fma(u.share, by_x, h[0]));
}

/// The same height, with the normal of the triangle that has the point.
template <class V>
COHORT_LANE TerrainPoint<V> terrain_point(const TerrainView& t, V x, V y) {
  const auto u = terrain_detail::along(x, t.x, t.dx, t.cols), v = terrain_detail::along(y, t.y, t.dy, t.rows);
  V h[4];
  terrain_detail::corners(t, u.first, v.first, h);
  const auto over = v.share > u.share;
  const V by_x = select(over, h[3] - h[2], h[1] - h[0]), by_y = select(over, h[2] - h[0], h[3] - h[1]);
  const V gx = by_x * u.inside / V(t.dx), gy = by_y * v.inside / V(t.dy);
  const V one(1.0f), inverse = one / sqrt(fma(gx, gx, fma(gy, gy, one)));
  return {fma(v.share, by_y, fma(u.share, by_x, h[0])), {-gx * inverse, -gy * inverse, inverse}};
}

}  // namespace cohort::sim
