/// The prisms under a height field's triangles, over lanes: each lane looks at the cells under its own shape, all lanes
/// at once.
#pragma once
#include "sim/kernels/collide/collide.h"
#include "sim/kernels/collide/convex/spread.h"

namespace cohort::sim {

/// Where each lane's contacts are collected; of more than kMaxPairContacts, those that spread.h chooses.
template <class L>
struct LaneContacts {
  using V = typename L::V;
  static constexpr int kPlaces = SpreadChoice::kPlaces;
  alignas(64) float dist[kPlaces][L::kWidth], pos[kPlaces][3][L::kWidth], normal[kPlaces][3][L::kWidth];
  SpreadChoice choice[L::kWidth];
  const PairPose<V>& pose;  ///< of the field and the shape
  float reach, inverse;     ///< m, and one over the shape's bounding radius

  /// radius: of the shape's bounding sphere, m.
  COHORT_LANE LaneContacts(const PairPose<V>& pair, float margin_and_gap, float radius)  // NOLINT: written before read
      : pose(pair), reach(margin_and_gap), inverse(1.0f / radius) {
    for (auto& c : choice) c.clear();
  }
  COHORT_LANE void keep(int lane, float d, const float* p, const float* n) {
    SpreadChoice& mine = choice[lane];
    const int slot = mine.choosing() || mine.count == kMaxPairContacts ? choose(lane, d, p) : mine.count++;
    if (slot < 0) return;
    dist[slot][lane] = d;
    for (int i = 0; i < 3; ++i) pos[slot][i][lane] = p[i], normal[slot][i][lane] = n[i];
  }
  /// Whether there is a contact of the same direction nearer than `close`, m; the deeper of both stays.
  COHORT_KERNEL bool is_twin(int lane, float d, const float* p, const float* n, float close) {
    int list[kMaxPairContacts];
    const int count = choice[lane].kept(list);
    for (int k = 0; k < count; ++k) {
      const int at = list[k];
      float square = 0, along = 0;
      for (int i = 0; i < 3; ++i) {
        const float off = pos[at][i][lane] - p[i];
        square = fma(off, off, square), along = fma(normal[at][i][lane], n[i], along);
      }
      if (square >= close * close || along < 0.999f) continue;
      if (d < dist[at][lane]) {
        dist[at][lane] = d;
        for (int i = 0; i < 3; ++i) pos[at][i][lane] = p[i], normal[at][i][lane] = n[i];
      }
      return true;
    }
    return false;
  }
  COHORT_KERNEL int choose(int lane, float d, const float* p) {
    float axes[2][3], centre[3];
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < 2; ++k) axes[k][i] = get_lane(pose.rot1[3 * i + k], lane) * inverse;
      centre[i] = get_lane(pose.pos2[i], lane);
    }
    const auto lies = [&](float x, float y, float z, int axis) {
      const float off[3] = {x - centre[0], y - centre[1], z - centre[2]};
      return dot3(axes[axis], off);
    };
    return choice[lane].offer(reach - d, lies(p[0], p[1], p[2], 0), lies(p[0], p[1], p[2], 1),
                              [&](int at, float& depth, float& x, float& y) {
                                const auto& q = pos[at];
                                depth = reach - dist[at][lane];
                                x = lies(q[0][lane], q[1][lane], q[2][lane], 0);
                                y = lies(q[0][lane], q[1][lane], q[2][lane], 1);
                              });
  }
  /// The contacts of the lanes in `hit`: distance, and place and normal in the field's frame, which turns by `turn`;
  /// the place is about `centre`. on_side: lanes where it lies on a side of the prism, whose neighbour may have made the
  /// same contact; nearer than `close` to each other, m, both are one.
  COHORT_LANE void keep_all(unsigned hit, typename L::V d, const typename L::V* place, const typename L::V* direction,
                            const typename L::V* turn, const typename L::V* centre, unsigned on_side = 0,
                            float close = 0) {
    typename L::V p[3], n[3];
    rotate(n, turn, direction);
    rotate(p, turn, place);
    alignas(64) float result[7][L::kWidth];
    store(result[0], d);
    for (int i = 0; i < 3; ++i) store(result[1 + i], p[i] + centre[i]), store(result[4 + i], n[i]);
    for (unsigned left = hit; left != 0; left &= left - 1) {
      const int lane = lowest_bit(left);
      const float at_lane[3] = {result[1][lane], result[2][lane], result[3][lane]};
      const float normal_lane[3] = {result[4][lane], result[5][lane], result[6][lane]};
      if ((on_side >> lane & 1u) != 0 && is_twin(lane, result[0][lane], at_lane, normal_lane, close)) continue;
      keep(lane, result[0][lane], at_lane, normal_lane);
    }
  }
  /// One lane's, by the same rule. contact: distance, place, normal.
  COHORT_LANE void keep_one(int lane, const float* contact, const float (*turn)[L::kWidth],
                            const float (*centre)[L::kWidth]) {
    float p[3], n[3];
    for (int i = 0; i < 3; ++i) {
      p[i] = centre[i][lane], n[i] = 0.0f;
      for (int k = 0; k < 3; ++k) {
        p[i] += turn[3 * i + k][lane] * contact[1 + k];
        n[i] += turn[3 * i + k][lane] * contact[4 + k];
      }
    }
    keep(lane, contact[0], p, n);
  }
  /// The contacts as the other narrow phases give them; returns how many the fullest lane has.
  COHORT_LANE int write(ContactPoint<typename L::V>* out) {
    int most = 0, kept[L::kWidth][kMaxPairContacts];
    alignas(64) float count[L::kWidth];
    bool chosen = false;
    for (int lane = 0; lane < L::kWidth; ++lane) {
      const int n = choice[lane].choosing() ? choice[lane].kept(kept[lane]) : choice[lane].count;
      chosen = chosen || choice[lane].choosing();
      count[lane] = static_cast<float>(n);
      most = n > most ? n : most;
    }
    V* const type = nullptr;
    const V counts = load(count, type);
    alignas(64) float row[L::kWidth];
    for (int k = 0; k < most; ++k) {
      const auto has = V(static_cast<float>(k)) < counts;
      // from(place): the numbers of the contacts in a place.
      const auto take = [&](auto from, float otherwise) {
        if (!chosen) return select(has, load(from(k), type), V(otherwise));
        for (int lane = 0; lane < L::kWidth; ++lane) {
          const bool mine = static_cast<float>(k) < count[lane];
          row[lane] = !mine ? otherwise : from(choice[lane].choosing() ? kept[lane][k] : k)[lane];
        }
        return load(row, type);
      };
      out[k].dist = take([&](int at) { return dist[at]; }, kFarApart);
      for (int i = 0; i < 3; ++i) {
        out[k].pos[i] = take([&](int at) { return pos[at][i]; }, 0.0f);
        out[k].normal[i] = take([&](int at) { return normal[at][i]; }, i == 0 ? 1.0f : 0.0f);
        out[k].hint[i] = V(0.0f);
      }
    }
    return most;
  }
};

/// Largest whole number not above a.
template <class V>
COHORT_LANE V floor_of(V a) {
  const V r = round(a);
  return select(r > a, r - V(1.0f), r);
}

/// One of a cell's two prisms in every lane, about the lanes' own shapes, in the field's frame. Its top is a triangle,
/// its walls stand on the triangle's sides; wall k from corner k to the next.
template <class L>
struct Prism {
  using V = typename L::V;
  using M = typename L::M;
  V corner[3][3];    ///< of the top, m
  V floor;           ///< height of the bottom
  V up[3];           ///< unit, across the top
  V top_at;          ///< up . corner
  V wall_at[3];      ///< wall . corner
  float wall[3][2];  ///< unit, outwards
  int half;          ///< 0: over the cell's diagonal, 1: under it

  /// How far it reaches along d.
  COHORT_LANE V highest(const V* d) const {
    const M upwards = d[2] > V(0.0f);
    V most(-3e38f);
    for (const auto& c : corner) {
      most = max(most, fma(d[2], select(upwards, c[2], floor), fma(d[1], c[1], d[0] * c[0])));
    }
    return most;
  }
  /// A corner that lies farthest along d.
  COHORT_LANE void highest_point(V* out, const V* d) const {
    const M upwards = d[2] > V(0.0f);
    V most(-3e38f);
    for (const auto& c : corner) {
      const V z = select(upwards, c[2], floor);
      const V along = fma(d[2], z, fma(d[1], c[1], d[0] * c[0]));
      const M more = along > most;
      most = select(more, along, most);
      out[0] = select(more, c[0], out[0]), out[1] = select(more, c[1], out[1]), out[2] = select(more, z, out[2]);
    }
  }
  /// Not outside by more than `tolerance`.
  COHORT_LANE M inside(const V* p, V tolerance) const {
    M yes = ((floor - p[2]) <= tolerance) & ((dot3(up, p) - top_at) <= tolerance);
    for (int k = 0; k < 3; ++k) {
      yes = yes & ((fma(V(wall[k][0]), p[0], V(wall[k][1]) * p[1]) - wall_at[k]) <= tolerance);
    }
    return yes;
  }
};

/// How far a shape reaches, about its centre, in the field's frame: along the axes, and across the cells' diagonals
/// (along CellGrid::across).
template <class V>
struct FieldExtent {
  V low[3], high[3], low_across, high_across;
};

/// The cells of a field.
struct CellGrid {
  float width, depth, top, bottom;  ///< m: half width, half depth, height of 1, thickness below 0
  float dx, dy;
  float across[2];  ///< unit, to the lower prism's side of the diagonals
  COHORT_LANE explicit CellGrid(const HeightFieldRecord& h)
      : width(h.size[0]),
        depth(h.size[1]),
        top(h.size[2]),
        bottom(h.size[3]),
        dx(2 * width / static_cast<float>(h.cols - 1)),
        dy(2 * depth / static_cast<float>(h.rows - 1)) {
    const float length = sqrt(dx * dx + dy * dy);
    across[0] = dy / length, across[1] = -(dx / length);
  }
};

/// Calls f(prism, lanes) for every prism whose box is within `reach` of the lane's shape, which lies at s and reaches
/// as far as `e` says. The prism's `up`, top_at and wall_at are known.
template <class L, class F>
COHORT_LANE void each_prism(const ModelView& m, const HeightFieldRecord& h, const typename L::V* s,
                            const FieldExtent<typename L::V>& e, float reach, typename L::M near, F f) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
  const CellGrid grid(h);
  const V far(reach);
  const V left = s[0] + (e.low[0] - far), right = s[0] + (e.high[0] + far);
  const V front = s[1] + (e.low[1] - far), back = s[1] + (e.high[1] + far);
  near = near & (left <= V(grid.width)) & (right >= V(-grid.width)) & (front <= V(grid.depth)) &
         (back >= V(-grid.depth)) & (s[2] + (e.low[2] - far) <= V(grid.top)) &
         (s[2] + (e.high[2] + far) >= V(-grid.bottom));
  if (!any(near)) return;
  // Each lane's cells: columns [first, last), rows likewise.
  const auto cell = [](V at, float half, float step, int n) {
    return clip((at + V(half)) * V(1.0f / step), V(-1.0f), V(static_cast<float>(n)));
  };
  const auto limited = [](V at, int n) { return clip(at, V(0.0f), V(static_cast<float>(n - 1))); };
  const auto lower = [&](V at, float half, float step, int n) { return limited(floor_of(cell(at, half, step, n)), n); };
  const auto upper = [&](V at, float half, float step, int n) {
    return limited(-floor_of(-cell(at, half, step, n)), n);
  };
  const V c0 = lower(left, grid.width, grid.dx, h.cols), c1 = upper(right, grid.width, grid.dx, h.cols);
  const V r0 = lower(front, grid.depth, grid.dy, h.rows), r1 = upper(back, grid.depth, grid.dy, h.rows);
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
  alignas(64) float height[4][kLanes];
  V* const type = nullptr;
  Prism<L> prism;
  prism.floor = V(-grid.bottom) - s[2];
  const float ax = grid.across[0], ay = grid.across[1];
  // The walls of the prism over the diagonal, then of the one under it.
  const float wall[2][3][2] = {{{-1, 0}, {ax, ay}, {0, 1}}, {{-ax, -ay}, {1, 0}, {0, -1}}};
  const V reaches[2][3] = {{-e.high[0], e.low_across, e.low[1]}, {-e.high_across, e.low[0], -e.high[1]}};
  const int triangle[2][3] = {{2, 0, 3}, {0, 3, 1}};
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
      // The cell's corners about the shape's centre: 00, 01 (next column), 10 (next row), 11.
      V corner[4][3];
      for (int k = 0; k < 4; ++k) {
        corner[k][0] = fma(col + V(k % 2 ? 1.0f : 0.0f), V(grid.dx), V(-grid.width)) - s[0];
        corner[k][1] = fma(row + V(k / 2 ? 1.0f : 0.0f), V(grid.dy), V(-grid.depth)) - s[1];
        corner[k][2] = fma(load(height[k], type), V(grid.top), -s[2]);
      }
      for (int t = 0; t < 2; ++t) {
        const V *x = corner[triangle[t][0]], *y = corner[triangle[t][1]], *z = corner[triangle[t][2]];
        typename L::M met = here & (max(x[2], max(y[2], z[2])) >= e.low[2] - far);
        for (int k = 0; k < 3; ++k) {
          const V* from = corner[triangle[t][k]];
          prism.wall[k][0] = wall[t][k][0], prism.wall[k][1] = wall[t][k][1];
          prism.wall_at[k] = fma(V(wall[t][k][0]), from[0], V(wall[t][k][1]) * from[1]);
          met = met & (reaches[t][k] - prism.wall_at[k] <= far);
        }
        if (!any(met)) continue;
        V xy[3], xz[3];
        for (int i = 0; i < 3; ++i) {
          prism.corner[0][i] = x[i], prism.corner[1][i] = y[i], prism.corner[2][i] = z[i];
          xy[i] = y[i] - x[i], xz[i] = z[i] - x[i];
        }
        cross(prism.up, xy, xz);
        const V scale = V(t == 0 ? 1.0f : -1.0f) / sqrt(dot3(prism.up, prism.up));
        for (V& u : prism.up) u *= scale;
        prism.top_at = dot3(prism.up, x);
        prism.half = t;
        f(prism, met);
      }
    }
  }
}

}  // namespace cohort::sim
