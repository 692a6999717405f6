/// Capsules, cylinders, ellipsoids, boxes and meshes of few faces on a height field, over lanes: a contact for each
/// prism or, of a shape that lies on a prism's top, for each corner of what lies there. A lane of which
/// height_field_touch.h does not know where it touches a prism (parallel faces; parts that are not looked at) is
/// searched alone (height_field_prisms.h).
#pragma once
#include "sim/kernels/collide/convex/queued.h"
#include "sim/kernels/collide/height_field_top.h"
#if defined(COHORT_SEARCHES_IN_PLACE)
#include "sim/kernels/collide/convex/height_field_prisms.h"
#endif

namespace cohort::sim {

/// How far a core reaches in the field's frame.
template <class L, class Core>
COHORT_LANE FieldExtent<typename L::V> extent_of(const Core& core, const CellGrid& grid) {
  using V = typename L::V;
  FieldExtent<V> e;
  const V zero(0.0f);
  for (int i = 0; i < 3; ++i) {
    V d[3] = {zero, zero, zero};
    d[i] = V(1.0f);
    core.span(e.low[i], e.high[i], d);
  }
  const V across[3] = {V(grid.across[0]), V(grid.across[1]), zero};
  core.span(e.low_across, e.high_across, across);
  return e;
}

/// Contacts of a height field and the shapes in `near`, as height_field_sphere's. search: as Constraints::search.
template <class L, class Core>
COHORT_KERNEL int height_field_core(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                    const PairPose<typename L::V>& pose, typename L::M near,
                                    [[maybe_unused]] void* search) {
  using V = typename L::V;
  using M = typename L::M;
  constexpr int kLanes = L::kWidth;
  const GeomRecord& g = m.geom[p.geom2];
  const HeightFieldRecord& h = m.height_field[m.geom[p.geom1].data];
  const CellGrid grid(h);
  const float radius = g.shape == kCapsule ? g.size[0] : 0.0f, reach = p.margin + p.gap;
  V d[3], s[3], R[9];
  for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i];
  rotate_back(s, pose.rot1, d);
  for (int j = g.shape == kCapsule ? 2 : 0; j < 3; ++j) {
    const V column[3] = {pose.rot2[j], pose.rot2[3 + j], pose.rot2[6 + j]};
    V turned[3];
    rotate_back(turned, pose.rot1, column);
    for (int i = 0; i < 3; ++i) R[3 * i + j] = turned[i];
  }
  const Core core(m, g, R);
  CoreReach<L> around;
  around.extent = extent_of<L>(core, grid);
  if constexpr (Core::kRound) {
    const V zero(0.0f), one(1.0f);
    const V wall[3][3] = {{-one, zero, zero}, {V(grid.across[0]), V(grid.across[1]), zero}, {zero, one, zero}};
    for (int k = 0; k < 3; ++k) core.lowest_point(around.at_wall[k], wall[k]);
  }
  FieldExtent<V> whole = around.extent;
  const V r(radius), enough(radius + reach);
  for (int i = 0; i < 3; ++i) whole.low[i] -= r, whole.high[i] += r;
  whole.low_across -= r, whole.high_across += r;
  LaneContacts<L> found(pose, reach, g.radius);
  const bool wide = m.option.deepest_only == 0 && stands_wide<Core>(grid, g.radius);
  alignas(64) float floor[kLanes], points[9][kLanes], axes[9][kLanes];
  bool stored = false;
  each_prism<L>(m, h, s, whole, reach, near, [&](const Prism<L>& prism, M met) {
    met = met & (core.lowest(prism.up) - prism.top_at <= enough);
    if (!any(met)) return;
    PrismTouch<L> touch;
    if constexpr (Core::kSegment) {
      const M over = segment_over_top<L>(touch, prism, core, met);
      const M left = met & flip(over);
      if (any(left)) {
        PrismTouch<L> other;
        touch_prism<L>(other, prism, core, around, g.radius, enough, left);
        touch.apart = select(left, other.apart, touch.apart);
        for (int i = 0; i < 3; ++i) {
          touch.axis[i] = select(left, other.axis[i], touch.axis[i]);
          touch.on1[i] = select(left, other.on1[i], touch.on1[i]);
          touch.on2[i] = select(left, other.on2[i], touch.on2[i]);
        }
        touch.known = over | (left & other.known);
      }
    } else {
      touch_prism<L>(touch, prism, core, around, g.radius, enough, met);
    }
    met = met & (touch.apart <= enough);
    V dist = touch.apart - r, point[3];
    for (int i = 0; i < 3; ++i) point[i] = V(0.5f) * (touch.on1[i] + fma(-touch.axis[i], r, touch.on2[i]));
    // Of the lanes of `met` that are not known; those without a contact leave it.
    const auto search_for = [&](M unknown) {
      const unsigned odd = lane_bits(unknown);
      if (odd == 0) return;
      if (!stored) {
        stored = true;
        for (int i = 0; i < 9; ++i) store(axes[i], g.shape == kCapsule && i % 3 != 2 ? V(0.0f) : R[i]);
      }
      for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < 3; ++i) store(points[3 * k + i], prism.corner[k][i]);
      }
      store(floor, prism.floor);
      alignas(64) float result[7][kLanes];
      store(result[0], dist);
      for (int i = 0; i < 3; ++i) store(result[1 + i], point[i]), store(result[4 + i], touch.axis[i]);
      for (int lane = 0; lane < kLanes; ++lane) {
        if ((odd >> lane & 1u) == 0) continue;
        // About the shape's centre, in the field's axes.
        float corners[18], in_field[7];
        for (int k = 0; k < 9; ++k) {
          corners[9 + k] = points[k][lane], corners[k] = k % 3 == 2 ? floor[lane] : points[k][lane];
        }
        QueuedShape shape{&g, {0, 0, 0}, {}};
        for (int i = 0; i < 9; ++i) shape.rot[i] = axes[i][lane];
#if defined(COHORT_SEARCHES_IN_PLACE)
        const bool meets = collide::prism_and_shape(m, corners, shape, reach, farthest_function<L>(), in_field,
                                                    *static_cast<collide::SearchSpace*>(search));
#else
        const bool meets = prism_and_shape(m, corners, shape, reach, farthest_function<L>(), in_field);
#endif
        for (int k = 0; k < 7 && meets; ++k) result[k][lane] = in_field[k];
        if (!meets) result[0][lane] = kFarApart;
      }
      V* const type = nullptr;
      dist = load(result[0], type);
      for (int i = 0; i < 3; ++i) point[i] = load(result[1 + i], type), touch.axis[i] = load(result[4 + i], type);
      met = met & (dist < V(kFarApart));
      touch.known = touch.known | unknown;
    };
    // Of a round core an axis that is not known may not be the best one; nor is it of what is apart.
    const M doubted = met & flip(touch.known);
    search_for(Core::kRound ? doubted : doubted & (touch.apart > V(0.0f)));
    if constexpr (Core::kStands) {
      if (wide) {
        met = met & flip(standing_on_top<L>(found, prism, core, touch.axis, dist, r, enough, g.radius, pose, met));
      }
    }
    search_for(met & flip(touch.known));
    const unsigned hit = lane_bits(met);
    if (hit != 0) found.keep_all(hit, dist, point, touch.axis, pose.rot1, pose.pos2);
  });
  return found.write(out);
}

/// Of any shape that the lanes know.
template <class L>
COHORT_LANE int height_field_shape(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                   const PairPose<typename L::V>& pose, typename L::M near, void* search) {
  switch (m.geom[p.geom2].shape) {
    case kSphere:
      return height_field_sphere<L>(out, m, p, pose, near);
    case kCapsule:
      return height_field_core<L, SegmentCore<L>>(out, m, p, pose, near, search);
    case kEllipsoid:
      return height_field_core<L, EllipsoidCore<L>>(out, m, p, pose, near, search);
    case kCylinder:
      return height_field_core<L, CylinderCore<L>>(out, m, p, pose, near, search);
    case kBox:
      return height_field_core<L, BoxCore<L>>(out, m, p, pose, near, search);
    default:
      return height_field_core<L, MeshCore<L>>(out, m, p, pose, near, search);
  }
}

}  // namespace cohort::sim
