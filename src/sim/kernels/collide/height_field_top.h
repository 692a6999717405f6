/// What lies on a prism's top, over lanes: the part of a shape's footprint that is over the triangle makes a contact at
/// each of its corners. One contact for each prism would leave a shape on one of the cell's size without support at all
/// other corners, and rounding would choose its place anew in every step.
#pragma once
#include "sim/kernels/collide/height_field_touch.h"
#include "sim/kernels/collide/polygon_clip.h"

namespace cohort::sim {

/// What overlaps a prism's top by no more than this share beyond the least overlap lies on it.
inline constexpr float kOnTop = 0.02f;
/// Contacts nearer to each other than this, in terms of the bounding radius, are one: neighbouring triangles share the
/// corners where a footprint crosses their sides.
inline constexpr float kOneContact = 0.01f;
/// Under a shape whose bounding radius is more than this times a cell's diagonal there are prisms enough.
inline constexpr float kManyCells = 4.0f;

template <class Core>
COHORT_LANE bool stands_wide(const CellGrid& grid, float radius) {
  return Core::kStands && kManyCells * kManyCells * (grid.dx * grid.dx + grid.dy * grid.dy) > radius * radius;
}

/// Makes those contacts of the lanes in `near` whose shapes lie on the prism's top. Returns the lanes where one of them
/// is as deep as the prism and the shape touch, but for rounding: they need no other contact. r: the radius around the
/// core; enough: that and the reach; size: of the bounding sphere, m.
template <class L, class Core>
COHORT_KERNEL typename L::M standing_on_top(LaneContacts<L>& found, const Prism<L>& prism, const Core& core,
                                            const PrismTouch<L>& touch, typename L::V r, typename L::V enough,
                                            float size, const PairPose<typename L::V>& pose, typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  const V rounding(kOverlapRounding * size), lowest = core.lowest(prism.up) - prism.top_at;
  near = near & (lowest >= touch.apart - fma(V(kOnTop), abs(touch.apart), rounding));
  V deepest(kFarApart);
  if (any(near)) {
    LanePolygon<L> polygon;
    core.footprint(polygon, prism.up, near);
    for (int k = 0; k < 3; ++k) {
      polygon.clip(V(-prism.wall[k][0]), V(-prism.wall[k][1]), -prism.wall_at[k], V(0.0f), near);
    }
    const float apart = kOneContact * size * (kOneContact * size);
    for (int k = 0; k < polygon.slots; ++k) {
      const V p[3] = {polygon.at[0][k], polygon.at[1][k], polygon.at[2][k]};
      const V height = dot3(prism.up, p) - prism.top_at;
      const M here = near & (height <= enough) & (polygon.corner[k] > V(0.0f));
      const unsigned bits = lane_bits(here);
      if (bits == 0) continue;
      deepest = select(here, min(deepest, height), deepest);
      // Midway between the top and the surface around the core.
      const V down = fma(V(0.5f), height - r, r);
      V point[3];
      for (int i = 0; i < 3; ++i) point[i] = fma(-down, prism.up[i], p[i]);
      found.keep_all(bits, height - r, point, prism.up, pose.rot1, pose.pos2, apart);
    }
  }
  return deepest <= touch.apart + rounding;
}

}  // namespace cohort::sim
