/// What lies on a prism's top, over lanes: the part of a shape's footprint that is over the triangle makes a contact at
/// each of its corners. One contact for each prism would leave a shape on one of the cell's size without support at all
/// other corners, and rounding would choose its place anew in every step.
#pragma once
#include "sim/kernels/collide/height_field_touch.h"
#include "sim/kernels/collide/polygon_clip.h"

namespace cohort::sim {

/// What overlaps a prism's top by no more than this share beyond the least overlap may lie on it.
inline constexpr float kOnTop = 0.02f;
/// Cosine between the top's normal and the way out of the prism, of what lies on the top: one degree. Of what is tilted
/// more, an edge or a corner touches.
inline constexpr float kLiesOnTop = 0.99985f;
/// What a corner may be shallower by than the prism and the shape touch, and counts as deep as that, in terms of the
/// bounding radius: lanes have both by other ways of single precision.
inline constexpr float kAsDeep = 1e-5f;
/// Contacts nearer to each other than this, in terms of the bounding radius, are one: neighbouring triangles share the
/// corners where a footprint crosses their sides.
inline constexpr float kOneContact = 0.01f;
/// Under a shape whose bounding radius is more than this times a cell's diagonal there are prisms enough.
inline constexpr float kManyCells = 4.0f;

template <class Core>
COHORT_LANE bool stands_wide(const CellGrid& grid, float radius) {
  return Core::kStands && kManyCells * kManyCells * (grid.dx * grid.dx + grid.dy * grid.dy) > radius * radius;
}

/// Makes those contacts of the lanes in `near` whose shapes lie on the prism's top: they leave it along the
/// top's normal, and none of the corners is deeper than the prism and the shape touch. Returns the lanes where
/// one of them is as deep as that, but for rounding: they need no other contact. Of what lies on a line (Core::lies)
/// that holds where it is nowhere deeper: one that dips elsewhere rolls less on one contact for each prism (sim_rest
/// capsule field1). axis: the way out, from the prism to
/// the shape; dist: the distance along it; r: the radius around the core; enough: that and the reach; size: of the
/// bounding sphere, m.
template <class L, class Core>
COHORT_KERNEL typename L::M standing_on_top(LaneContacts<L>& found, const Prism<L>& prism, const Core& core,
                                            const typename L::V* axis, typename L::V dist, typename L::V r,
                                            typename L::V enough, float size, const PairPose<typename L::V>& pose,
                                            typename L::M near) {
  using V = typename L::V;
  V deepest(kFarApart);
  const V rounding(kAsDeep * size), shallowest = dist - fma(V(kOnTop), abs(dist), rounding);
  near = near & (dot3(axis, prism.up) >= V(kLiesOnTop));
  if constexpr (Core::kLies)
    near = near & (flip(core.lies(prism.up)) | (core.lowest(prism.up) - prism.top_at - r >= shallowest));
  if (!any(near)) return near;
  LanePolygon<L> polygon;
  core.footprint(polygon, prism.up, near);
  for (int k = 0; k < 3; ++k) {
    polygon.clip_in_any_order(V(-prism.wall[k][0]), V(-prism.wall[k][1]), -prism.wall_at[k], V(0.0f), near);
  }
  V height[LanePolygon<L>::kMostSlots];
  for (int k = 0; k < polygon.slots; ++k) {
    const V p[3] = {polygon.at[0][k], polygon.at[1][k], polygon.at[2][k]};
    height[k] = dot3(prism.up, p) - prism.top_at;
    deepest = select(polygon.corner[k] > V(0.0f), min(deepest, height[k] - r), deepest);
  }
  near = near & (deepest >= shallowest);
  const float close = kOneContact * size;
  for (int k = 0; k < polygon.slots; ++k) {
    const unsigned bits = lane_bits(near & (height[k] <= enough) & (polygon.corner[k] > V(0.0f)));
    if (bits == 0) continue;
    V point[3], inside(kFarApart);
    for (int side = 0; side < 3; ++side) {
      const float* wall = prism.wall[side];
      inside = min(inside, prism.wall_at[side] - fma(V(wall[0]), polygon.at[0][k], V(wall[1]) * polygon.at[1][k]));
    }
    // Midway between the top and the surface around the core.
    const V down = fma(V(0.5f), height[k] - r, r);
    for (int i = 0; i < 3; ++i) point[i] = fma(-down, prism.up[i], polygon.at[i][k]);
    found.keep_all(bits, height[k] - r, point, prism.up, pose.rot1, pose.pos2, lane_bits(inside < V(close)), close);
  }
  return near & (deepest <= dist + rounding);
}

}  // namespace cohort::sim
