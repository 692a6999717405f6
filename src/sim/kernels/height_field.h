/// A sphere on a height field, over lanes: each lane looks at the cells under its own sphere, all lanes at once.
#pragma once
#include "sim/collide/queued.h"
#include "sim/kernels/collide.h"
#if defined(COHORT_SEARCHES_IN_PLACE)
#include "sim/collide/sphere_prism.h"
#endif

namespace cohort::sim {

/// Where each lane's contacts are collected; a full lane keeps its deepest ones.
template <class L>
struct LaneContacts {
  float dist[kMaxPairContacts][L::kWidth], pos[kMaxPairContacts][3][L::kWidth], normal[kMaxPairContacts][3][L::kWidth];
  int count[L::kWidth];

  COHORT_LANE LaneContacts() {  // NOLINT: the numbers are written before they are read
    for (int& n : count) n = 0;
  }
  COHORT_LANE void keep(int lane, float d, const float* p, const float* n) {
    int slot = count[lane];
    if (slot == kMaxPairContacts) {
      // The shallowest makes room for a deeper one.
      slot = 0;
      for (int k = 1; k < kMaxPairContacts; ++k) {
        if (dist[k][lane] > dist[slot][lane]) slot = k;
      }
      if (dist[slot][lane] <= d) return;
    } else {
      ++count[lane];
    }
    dist[slot][lane] = d;
    for (int i = 0; i < 3; ++i) pos[slot][i][lane] = p[i], normal[slot][i][lane] = n[i];
  }
  /// The contacts as the other narrow phases give them; returns how many the fullest lane has.
  COHORT_LANE int write(ContactPoint<typename L::V>* out) {
    using V = typename L::V;
    int most = 0;
    for (int lane = 0; lane < L::kWidth; ++lane) most = count[lane] > most ? count[lane] : most;
    alignas(64) float row[L::kWidth];
    V* const type = nullptr;
    for (int k = 0; k < most; ++k) {
      const auto take = [&](const float* from, float otherwise) {
        for (int lane = 0; lane < L::kWidth; ++lane) row[lane] = k < count[lane] ? from[lane] : otherwise;
        return load(row, type);
      };
      out[k].dist = take(dist[k], kFarApart);
      for (int i = 0; i < 3; ++i) {
        out[k].pos[i] = take(pos[k][i], 0.0f);
        out[k].normal[i] = take(normal[k][i], i == 0 ? 1.0f : 0.0f);
        out[k].hint[i] = V(0.0f);
      }
    }
    return most;
  }
};

/// The point of a triangle nearest to the origin (Ericson 2005, section 5.1.5).
template <class V>
COHORT_LANE void nearest_point(V* out, const V* a, const V* b, const V* c) {
  const V zero(0.0f), one(1.0f);
  V ab[3], ac[3];
  for (int i = 0; i < 3; ++i) ab[i] = b[i] - a[i], ac[i] = c[i] - a[i];
  const V d1 = -dot3(ab, a), d2 = -dot3(ac, a), d3 = -dot3(ab, b), d4 = -dot3(ac, b), d5 = -dot3(ab, c),
          d6 = -dot3(ac, c);
  const V vc = fma(d1, d4, -(d3 * d2)), vb = fma(d5, d2, -(d1 * d6)), va = fma(d3, d6, -(d5 * d4));
  const V to_b = d4 - d3, to_c = d5 - d6;
  // The shares of b and c: inside, on an edge, at a corner. What is decided first in a chain comes last here.
  const V inverse = one / (va + vb + vc);
  V v = vb * inverse, w = vc * inverse;
  const auto on_bc = (va <= zero) & (to_b >= zero) & (to_c >= zero);
  const V along_bc = to_b / (to_b + to_c);
  v = select(on_bc, one - along_bc, v), w = select(on_bc, along_bc, w);
  const auto on_ac = (vb <= zero) & (d2 >= zero) & (d6 <= zero);
  v = select(on_ac, zero, v), w = select(on_ac, d2 / (d2 - d6), w);
  const auto at_c = (d6 >= zero) & (d5 <= d6);
  v = select(at_c, zero, v), w = select(at_c, one, w);
  const auto on_ab = (vc <= zero) & (d1 >= zero) & (d3 <= zero);
  v = select(on_ab, d1 / (d1 - d3), v), w = select(on_ab, zero, w);
  const auto at_b = (d3 >= zero) & (d4 <= d3);
  v = select(at_b, one, v), w = select(at_b, zero, w);
  const auto at_a = (d1 <= zero) & (d2 <= zero);
  v = select(at_a, zero, v), w = select(at_a, zero, w);
  for (int i = 0; i < 3; ++i) out[i] = fma(v, ab[i], fma(w, ac[i], a[i]));
}

/// The prism under a triangle and the origin, where the triangle is not the nearest part: out through the nearest face
/// of a prism that the origin is in, or towards the wall beside it. up: across the triangle, upwards times `turn`;
/// floor: height of the prism's bottom. Changes on (the nearest point), away (unit, from it) and apart where it knows
/// them; takes lanes that are farther than `around` out of met.
template <class V, class M>
COHORT_KERNEL void beside_or_inside(const V* const* corner, const V* up, V turn, V floor, V around, M& met, M& known,
                                    V* on, V* away, V& apart) {
  const V zero(0.0f), one(1.0f);
  const V *x = corner[0], *y = corner[1], *z = corner[2];
  // Beyond the top, the bottom, and the walls.
  const V scale = turn / sqrt(dot3(up, up));
  const V top[3] = {up[0] * scale, up[1] * scale, up[2] * scale};
  V most = -dot3(top, x), out[3] = {top[0], top[1], top[2]};
  const auto take = [&](V beyond, V nx, V ny, V nz) {
    const auto more = beyond > most;
    most = select(more, beyond, most);
    out[0] = select(more, nx, out[0]), out[1] = select(more, ny, out[1]), out[2] = select(more, nz, out[2]);
  };
  V outside(-1e30f);
  for (int k = 0; k < 3; ++k) {
    const V *p = corner[k], *q = corner[k == 2 ? 0 : k + 1];
    const V ex = q[0] - p[0], ey = q[1] - p[1];
    const V length = turn / sqrt(fma(ex, ex, ey * ey));
    const V nx = ey * length, ny = -(ex * length);
    const V beyond = -fma(nx, p[0], ny * p[1]);
    outside = max(outside, beyond);
    take(beyond, nx, ny, zero);
  }
  take(floor, zero, zero, V(-1.0f));
  met = met & (known | (most <= around));
  const M inside = flip(known) & (most <= zero);
  // The nearest point of the walls is at the origin's own height, where the wall is as high.
  const V flat[3][3] = {{x[0], x[1], zero}, {y[0], y[1], zero}, {z[0], z[1], zero}};
  V wall[3];
  nearest_point(wall, flat[0], flat[1], flat[2]);
  const V far = sqrt(fma(wall[0], wall[0], wall[1] * wall[1]));
  const V height = x[2] - fma(up[0], wall[0] - x[0], up[1] * (wall[1] - x[1])) / up[2];
  const M beside = flip(known | inside) & (outside > zero) & (far > V(1e-9f)) & (height >= zero) & (floor <= zero);
  const V inverse = V(-1.0f) / select(beside, far, one);
  for (int i = 0; i < 3; ++i) {
    away[i] = select(inside, out[i], select(beside, wall[i] * inverse, away[i]));
    on[i] = select(inside, -(most * out[i]), select(beside, wall[i], on[i]));
  }
  apart = select(inside, most, select(beside, far, apart));
  known = known | inside | beside;
}

/// Largest whole number not above a.
template <class V>
COHORT_LANE V floor_of(V a) {
  const V r = round(a);
  return select(r > a, r - V(1.0f), r);
}

/// Contacts of the spheres in `near`: one for each of the field's prisms that a lane's sphere meets; the deepest
/// kMaxPairContacts of them. A sphere that is neither nearest to a prism's top, nor in it, nor beside one of its walls
/// (below the field, or over the edge of a higher wall) is left to sphere_and_prism, alone.
template <class L>
COHORT_KERNEL int height_field_sphere(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                      const PairPose<typename L::V>& pose, typename L::M near) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
  const HeightFieldRecord& h = m.height_field[m.geom[p.geom1].data];
  const float radius = m.geom[p.geom2].size[0], reach = p.margin + p.gap, around = radius + reach;
  const float width = h.size[0], depth = h.size[1], top = h.size[2], bottom = h.size[3];
  const float dx = 2 * width / static_cast<float>(h.cols - 1), dy = 2 * depth / static_cast<float>(h.rows - 1);
  V d[3], s[3];
  for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i];
  rotate_back(s, pose.rot1, d);
  near = near & (abs(s[0]) <= V(width + around)) & (abs(s[1]) <= V(depth + around)) & (s[2] <= V(top + around)) &
         (s[2] >= V(-bottom - around));
  if (!any(near)) return 0;
  // Each lane's cells: columns [first, last), rows likewise.
  const auto cell = [](V at, float half, float step, int n) {
    return clip((at + V(half)) * V(1.0f / step), V(-1.0f), V(static_cast<float>(n)));
  };
  const auto limited = [](V at, int n) { return clip(at, V(0.0f), V(static_cast<float>(n - 1))); };
  const auto lower = [&](V at, float half, float step, int n) {
    return limited(floor_of(cell(at - V(around), half, step, n)), n);
  };
  const auto upper = [&](V at, float half, float step, int n) {
    return limited(-floor_of(-cell(at + V(around), half, step, n)), n);
  };
  const V c0 = lower(s[0], width, dx, h.cols), c1 = upper(s[0], width, dx, h.cols);
  const V r0 = lower(s[1], depth, dy, h.rows), r1 = upper(s[1], depth, dy, h.rows);
  alignas(64) float first_col[kLanes], last_col[kLanes], first_row[kLanes], last_row[kLanes];
  store(first_col, c0), store(last_col, c1), store(first_row, r0), store(last_row, r1);
  const unsigned waiting = lane_bits(near);
  int cols = 0, rows = 0, at[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    // A lane that is far, or whose numbers are none, reads the first cell.
    const bool mine = (waiting >> lane & 1u) != 0;
    at[lane] = h.first + (mine ? static_cast<int>(first_row[lane]) * h.cols + static_cast<int>(first_col[lane]) : 0);
    if (!mine) continue;
    const int n = static_cast<int>(last_col[lane] - first_col[lane]),
              k = static_cast<int>(last_row[lane] - first_row[lane]);
    cols = n > cols ? n : cols, rows = k > rows ? k : rows;
  }
  LaneContacts<L> found;
  alignas(64) float height[4][kLanes], result[7][kLanes];
  V* const type = nullptr;
  for (int r = 0; r < rows; ++r) {
    const V row = r0 + V(static_cast<float>(r));
    for (int c = 0; c < cols; ++c) {
      const V col = c0 + V(static_cast<float>(c));
      const auto here = near & (row < r1) & (col < c1);
      if (!any(here)) continue;
      const unsigned bits = lane_bits(here);
      for (int lane = 0; lane < kLanes; ++lane) {
        const float* z = m.height + at[lane] + ((bits >> lane & 1u) != 0 ? r * h.cols + c : 0);
        height[0][lane] = z[0], height[1][lane] = z[1];
        height[2][lane] = z[h.cols], height[3][lane] = z[h.cols + 1];
      }
      // The cell's corners about the sphere's centre: 00, 01 (next column), 10 (next row), 11.
      V corner[4][3];
      for (int k = 0; k < 4; ++k) {
        corner[k][0] = fma(col + V(k % 2 ? 1.0f : 0.0f), V(dx), V(-width)) - s[0];
        corner[k][1] = fma(row + V(k / 2 ? 1.0f : 0.0f), V(dy), V(-depth)) - s[1];
        corner[k][2] = fma(load(height[k], type), V(top), -s[2]);
      }
      const int triangle[2][3] = {{2, 0, 3}, {0, 3, 1}};
      for (int t = 0; t < 2; ++t) {
        const V *x = corner[triangle[t][0]], *y = corner[triangle[t][1]], *z = corner[triangle[t][2]];
        typename L::M met = here & (max(x[2], max(y[2], z[2])) >= V(-around));
        // Not above the plane of the triangle by more than the radius.
        V xy[3], xz[3], up[3];
        for (int i = 0; i < 3; ++i) xy[i] = y[i] - x[i], xz[i] = z[i] - x[i];
        cross(up, xy, xz);
        const V over = dot3(up, x) * V(t == 0 ? -1.0f : 1.0f);
        met = met & (over <= V(around * 1.00001f) * sqrt(dot3(up, up)));
        if (!any(met)) continue;
        V on[3];
        nearest_point(on, x, y, z);
        // From the nearest point to the centre is -on. It is the prism's nearest when the bottom does not reach nearer.
        typename L::M plain = on[2] < V(0.0f);
        const V low = (V(-bottom) - s[2]) - on[2];
        const V* const three[3] = {x, y, z};
        for (const V* k : three) {
          plain = plain & (fma(k[0] - on[0], on[0], fma(k[1] - on[1], on[1], low * on[2])) >= V(0.0f));
        }
        V apart = sqrt(dot3(on, on)), away[3];
        for (int i = 0; i < 3; ++i) away[i] = on[i] * (V(-1.0f) / apart);
        typename L::M known = plain;
        if (any(met & flip(plain))) {
          beside_or_inside(three, up, V(t == 0 ? 1.0f : -1.0f), V(-bottom) - s[2], V(around), met, known, on, away,
                           apart);
        }
        const auto touches = met & known & (apart <= V(around));
        const unsigned hit = lane_bits(touches), odd = lane_bits(met & flip(known));
        if (hit != 0) {
          V normal[3], point[3];
          // Midway between the surfaces, about the sphere's centre.
          for (int i = 0; i < 3; ++i) point[i] = V(0.5f) * fma(-away[i], V(radius), on[i]);
          rotate(normal, pose.rot1, away);
          rotate(point, pose.rot1, point);
          store(result[0], apart - V(radius));
          for (int i = 0; i < 3; ++i) store(result[1 + i], point[i] + pose.pos2[i]), store(result[4 + i], normal[i]);
          for (int lane = 0; lane < kLanes; ++lane) {
            if ((hit >> lane & 1u) == 0) continue;
            const float at_lane[3] = {result[1][lane], result[2][lane], result[3][lane]};
            const float normal_lane[3] = {result[4][lane], result[5][lane], result[6][lane]};
            found.keep(lane, result[0][lane], at_lane, normal_lane);
          }
        }
        if (odd == 0) continue;
        alignas(64) float centre[3][kLanes], points[9][kLanes], turn[9][kLanes], place[3][kLanes];
        for (int i = 0; i < 3; ++i) {
          store(centre[i], s[i]), store(place[i], pose.pos1[i]);
          store(points[i], x[i] + s[i]), store(points[3 + i], y[i] + s[i]), store(points[6 + i], z[i] + s[i]);
        }
        for (int i = 0; i < 9; ++i) store(turn[i], pose.rot1[i]);
        for (int lane = 0; lane < kLanes; ++lane) {
          if ((odd >> lane & 1u) == 0) continue;
          float prism[18], in_field[7], point[3], normal[3];
          for (int k = 0; k < 9; ++k) prism[9 + k] = points[k][lane], prism[k] = k % 3 == 2 ? -bottom : points[k][lane];
          const float from[3] = {centre[0][lane], centre[1][lane], centre[2][lane]};
#if defined(COHORT_SEARCHES_IN_PLACE)
          if (!collide::near_prism(prism, from, radius, reach, in_field)) continue;
#else
          if (!sphere_and_prism(prism, from, radius, reach, in_field)) continue;
#endif
          for (int i = 0; i < 3; ++i) {
            point[i] = place[i][lane], normal[i] = 0.0f;
            for (int k = 0; k < 3; ++k) {
              point[i] += turn[3 * i + k][lane] * in_field[1 + k];
              normal[i] += turn[3 * i + k][lane] * in_field[4 + k];
            }
          }
          found.keep(lane, in_field[0], point, normal);
        }
      }
    }
  }
  return found.write(out);
}

}  // namespace cohort::sim
