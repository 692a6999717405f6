/// A tile of a picture: rays, what they meet, colours. The same source for every width of lanes.
#pragma once
#include "render/kernels/sky.h"

namespace cohort::render {

/// Transparent surfaces between the camera and t, blended as MuJoCo draws them: near to far, and again far to near.
/// One pass near to far keeps both: the first order as the map c -> keep1 * c + add1, the second as its counterpart.
template <class L, class Eight>
COHORT_KERNEL void blend_transparent(const FrameRecord& f, const Ray<typename L::V>& world, const typename L::V& from,
                                     const typename L::V& most, const Eye<typename L::V>& eye, unsigned lanes,
                                     Colour<typename L::V>& colour) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f);
  V keep1 = one, keep2 = one;
  Colour<V> add1{zero, zero, zero}, add2{zero, zero, zero};
  for (int k = 0; k < f.transparents; ++k) {
    const int number = f.transparent[k];
    Hit<V> hit = no_hit<V>();
    hit.entry.t = most;
    meet_instance<L, Eight>(f, number, world, from, lanes, hit);
    const unsigned met = lane_bits(hit.instance >= zero) & lanes;
    if (met == 0) continue;
    Shaded<V> s;
    shade<L, Eight>(f, f.instance[number], world, hit.entry, eye, met, 1.0f, false, true, s);
    const V a = select(lanes_of(met, static_cast<typename L::M*>(nullptr)), s.alpha, zero);
    const V rest = one - a;
    add2 = {fma(keep2 * a, s.colour.r, add2.r), fma(keep2 * a, s.colour.g, add2.g), fma(keep2 * a, s.colour.b, add2.b)};
    keep2 = keep2 * rest;
    add1 = {fma(rest, add1.r, a * s.colour.r), fma(rest, add1.g, a * s.colour.g), fma(rest, add1.b, a * s.colour.b)};
    keep1 = keep1 * rest;
  }
  colour.r = fma(keep2, fma(keep1, colour.r, add1.r), add2.r);
  colour.g = fma(keep2, fma(keep1, colour.g, add1.g), add2.g);
  colour.b = fma(keep2, fma(keep1, colour.b, add1.b), add2.b);
}

/// What the mirror shows, added to its own colour: the scene from the camera's mirror image, above the mirror only.
template <class L, class Eight>
COHORT_KERNEL void add_mirror(const FrameRecord& f, const Ray<typename L::V>& world, const Hit<typename L::V>& hit,
                              const Eye<typename L::V>& eye, unsigned lanes, Colour<typename L::V>& colour) {
  using V = typename L::V;
  const InstanceRecord& g = f.instance[f.mirror];
  const float normal[3] = {g.rot[2], g.rot[5], g.rot[8]};
  const bool box = static_cast<sim::VisualShape>(g.shape) == sim::VisualShape::kBox;
  const float lift = box ? g.size[2] : 0.0f;
  const float height = (g.pos[0] + lift * normal[0]) * normal[0] + (g.pos[1] + lift * normal[1]) * normal[1] +
                       (g.pos[2] + lift * normal[2]) * normal[2];
  unsigned mine = lanes & lane_bits(hit.instance == V(static_cast<float>(f.mirror)));
  if (box) mine &= lane_bits(hit.entry.part == V(5.0f));
  if (mine == 0) return;
  const Vector3<V> n = spread<V>(normal);
  const auto mirrored = [&](const Vector3<V>& a, float offset) {
    return along(a, V(-2.0f) * (dot(a, n) - V(offset)), n);
  };
  const Ray<V> ray{mirrored(world.origin, height), mirrored(world.direction, 0)};
  const Eye<V> there{mirrored(eye.place, height), mirrored(eye.step_x, 0), mirrored(eye.step_y, 0)};
  Hit<V> second = no_hit<V>();
  for (int i = 0; i < f.instances; ++i) {
    if (i == f.mirror || f.instance[i].transparent) continue;
    meet_instance<L, Eight>(f, i, ray, hit.entry.t, mine, second);
  }
  Shaded<V> image;
  shade_hits<L, Eight>(f, ray, second, there, mine, g.reflectance, false, true, image);
  const auto mask = lanes_of(mine, static_cast<typename L::M*>(nullptr));
  const V zero(0.0f);
  colour.r = colour.r + select(mask, image.colour.r, zero);
  colour.g = colour.g + select(mask, image.colour.g, zero);
  colour.b = colour.b + select(mask, image.colour.b, zero);
  colour = clipped(colour);
}

template <class L>
struct Packet {
  int x[L::kWidth], y[L::kWidth];
  unsigned inside;  ///< the lanes whose pixels are in the picture
};

/// Lanes lie in rows of the tile's width.
template <class L>
COHORT_LANE void write_packet(const FrameRecord& f, const Packet<L>& p, const Colour<typename L::V>& colour,
                              const typename L::V& depth, const typename L::V& seen,
                              const Vector3<typename L::V>& normal) {
  using V = typename L::V;
  constexpr int kWidth = L::kWidth, kRow = kWidth < kTile ? kWidth : kTile;
  alignas(64) float a[8][kWidth] = {};
  alignas(64) int byte[3][kWidth] = {};
  const V zero(0.0f), half(0.5f), most(255.0f);
  if (f.rgb) {
    store(a[0], fma(clip(colour.r, zero, V(1.0f)), most, half));
    store(a[1], fma(clip(colour.g, zero, V(1.0f)), most, half));
    store(a[2], fma(clip(colour.b, zero, V(1.0f)), most, half));
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < kWidth; ++i) byte[c][i] = static_cast<int>(a[c][i]);
    }
  }
  if (f.depth) store(a[3], depth);
  if (f.segmentation) store(a[4], seen);
  if (f.normal) store(a[5], normal.x), store(a[6], normal.y), store(a[7], normal.z);
  for (int row = 0; row < kWidth; row += kRow) {
    const unsigned inside = p.inside >> row & ((1u << kRow) - 1u);
    if (inside == 0) continue;
    const int n = sim::highest_bit(inside) + 1;  // the picture ends on the right
    const long at = static_cast<long>(p.y[row]) * f.width + p.x[row];
    if (f.rgb) {
      unsigned char* to = f.rgb + 3 * at;
      for (int i = 0; i < n; ++i) {
        for (int c = 0; c < 3; ++c) to[3 * i + c] = static_cast<unsigned char>(byte[c][row + i]);
      }
    }
    if (f.depth) {
      for (int i = 0; i < n; ++i) f.depth[at + i] = a[3][row + i];
    }
    if (f.segmentation) {
      for (int i = 0; i < n; ++i) {
        const int number = static_cast<int>(a[4][row + i]);
        f.segmentation[at + i] = number < 0 ? -1 : f.instance[number].id;
      }
    }
    if (f.normal) {
      for (int i = 0; i < n; ++i) {
        for (int c = 0; c < 3; ++c) f.normal[3 * (at + i) + c] = a[5 + c][row + i];
      }
    }
  }
}

/// The instances that a tile may show, near to far, as a CPU lists them. each() ends where what it calls says false.
struct TileList {
  const int *first, *last;
  template <class F>
  COHORT_LANE void each(F f) const {
    for (const int* at = first; at != last && f(*at); ++at) {
    }
  }
};

/// Where a pixel's ray goes, in the frustum at 1 m.
COHORT_LANE float column_of(const FrameRecord& f, int x) {
  return fma(static_cast<float>(x) + 0.5f, f.step_x, f.left);
}
COHORT_LANE float row_of(const FrameRecord& f, int y) {
  return fma(static_cast<float>(y) + 0.5f, -f.step_y, f.top);
}

template <class L, class Eight, class Near>
COHORT_KERNEL void draw_packet(const FrameRecord& f, const Near& near, const Packet<L>& p, const typename L::V& x,
                               const typename L::V& y) {
  using V = typename L::V;
  const V zero(0.0f), from(f.nearest);
  const Vector3<V> across = along(scaled(spread<V>(f.right), x), y, spread<V>(f.up));
  Ray<V> world{across, spread<V>(f.forward)};
  if (!f.orthographic) world = {{zero, zero, zero}, world.direction + across};
  const Eye<V> eye{{zero, zero, zero}, scaled(spread<V>(f.right), V(f.step_x)), scaled(spread<V>(f.up), V(f.step_y))};
  Hit<V> hit = no_hit<V>();
  bool transparent = false;
  near.each([&](int number) {
    const InstanceRecord& g = f.instance[number];
    if (g.nearest > largest_lane(hit.entry.t)) return false;
    if (g.transparent) {
      transparent = true;
      return true;
    }
    meet_instance<L, Eight>(f, number, world, from, p.inside, hit);
    return true;
  });
  Hit<V> seen = hit;  // of the segmentation, in which transparent surfaces count
  if (transparent && f.segmentation) {
    near.each([&](int number) {
      if (f.instance[number].transparent) meet_instance<L, Eight>(f, number, world, from, p.inside, seen);
      return true;
    });
  }
  const auto met = hit.instance >= zero;
  const unsigned met_lanes = lane_bits(met) & p.inside;
  Shaded<V> s{{zero, zero, zero}, zero, {zero, zero, zero}};
  if (met_lanes != 0 && (f.rgb || f.normal)) {
    shade_hits<L, Eight>(f, world, hit, eye, met_lanes, 1.0f, f.shadows != 0, f.rgb != nullptr, s);
  }
  if (f.rgb) {
    if (f.mirror >= 0) add_mirror<L, Eight>(f, world, hit, eye, met_lanes, s.colour);
    V limit = hit.entry.t;
    if (f.sky) {
      const V reach = sky_distance(f, world);
      const auto behind = reach < hit.entry.t;
      limit = min(limit, reach);
      const unsigned sky = lane_bits(behind) & p.inside;
      if (sky != 0) {
        const Colour<V> c = sky_colour<L>(f, world, eye, sky);
        s.colour.r = select(behind, c.r, s.colour.r), s.colour.g = select(behind, c.g, s.colour.g);
        s.colour.b = select(behind, c.b, s.colour.b);
      }
      if (f.haze) add_haze(f, world, limit, s.colour);
    }
    if (transparent) blend_transparent<L, Eight>(f, world, from, limit, eye, p.inside, s.colour);
  }
  write_packet<L>(f, p, s.colour, select(met, hit.entry.t, V(f.farthest)), seen.instance,
                  {select(met, s.normal.x, zero), select(met, s.normal.y, zero), select(met, s.normal.z, zero)});
}

/// A tile in which nothing is and no sky.
COHORT_LANE void clear_tile(const FrameRecord& f, int left, int top) {
  const int right = left + kTile < f.width ? left + kTile : f.width;
  const int end = top + kTile < f.height ? top + kTile : f.height;
  for (int y = top; y < end; ++y) {
    const long row = static_cast<long>(y) * f.width;
    const auto values = 3 * static_cast<unsigned long>(right - left);
    if (f.rgb) __builtin_memset(f.rgb + 3 * (row + left), 0, values);
    if (f.normal) __builtin_memset(f.normal + 3 * (row + left), 0, values * sizeof(float));
    for (long i = row + left; i < row + right; ++i) {
      if (f.depth) f.depth[i] = f.farthest;
      if (f.segmentation) f.segmentation[i] = -1;
    }
  }
}

/// Draws the pixels of one tile.
template <class L, class Eight>
COHORT_KERNEL void draw_tile(const FrameRecord& f, int tile) {
  using V = typename L::V;
  constexpr int kWidth = L::kWidth;
  const int left = tile % f.columns * kTile, top = tile / f.columns * kTile;
  if (f.tile_first[tile] == f.tile_first[tile + 1] && (f.sky == nullptr || f.rgb == nullptr)) {
    return clear_tile(f, left, top);
  }
  const TileList near{f.tile_instance + f.tile_first[tile], f.tile_instance + f.tile_first[tile + 1]};
  const bool whole = left + kTile <= f.width && top + kTile <= f.height;
  for (int begin = 0; begin < kTile * kTile; begin += kWidth) {
    if (top + begin / kTile >= f.height) break;
    Packet<L> p;
    alignas(64) float x[kWidth], y[kWidth];
    for (int i = 0; i < kWidth; ++i) {
      p.x[i] = left + (begin + i) % kTile, p.y[i] = top + (begin + i) / kTile;
      x[i] = column_of(f, p.x[i]), y[i] = row_of(f, p.y[i]);
    }
    p.inside = (1u << kWidth) - 1u;
    if (!whole) {
      for (int i = 0; i < kWidth; ++i) {
        if (p.x[i] >= f.width || p.y[i] >= f.height) p.inside &= ~(1u << i);
      }
    }
    if (p.inside == 0) continue;
    draw_packet<L, Eight>(f, near, p, load_anywhere(x, static_cast<V*>(nullptr)),
                          load_anywhere(y, static_cast<V*>(nullptr)));
  }
}

}  // namespace cohort::render
