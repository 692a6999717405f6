/// The lanes' side of the queued narrow phases (collide/queued.h): environments of a block that are near are taken out
/// of their lanes one by one, and their contacts put back.
#pragma once
#include "sim/collide/queued.h"
#include "sim/kernels/farthest.h"
#include "sim/kernels/height_field_shapes.h"
#include "sim/kernels/polytopes.h"
#include "sim/kernels/separation.h"
#if defined(COHORT_SEARCHES_IN_PLACE)
#include "sim/collide/narrow_phases.h"
#endif

namespace cohort::sim {

/// Contacts of the lanes in `near`; the other lanes get none. Returns how many contacts the fullest lane has.
/// separation: as Separations::component, where lanes whose shapes are apart put the direction; null where none is
/// remembered. starts: of searches over polytopes, at `place`. search: as Constraints::search.
template <class L>
COHORT_KERNEL int queue_narrow_phase(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                     const PairPose<typename L::V>& pose, typename L::M near, float* const* separation,
                                     const SearchStarts& starts, int place, [[maybe_unused]] void* search) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
  if (p.kernel == kHeightFieldConvex && (m.geom[p.geom2].shape != kMesh || p.by_axes != 0)) {
    return height_field_shape<L>(out, m, p, pose, near, search);
  }
  alignas(64) float waits[kLanes], pose_of[24][kLanes], result[7][kLanes], axis_of[4][kLanes];
  store(axis_of[0], V(static_cast<float>(kUnknownAxis)));
  for (int i = 0; i < 3; ++i) store(axis_of[1 + i], V(0.0f));
  if (p.by_axes) {
    const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
    const float rounding = kAxisRounding * (g1.radius + g2.radius);
    LeastOverlap<V> least;
    least_overlap<L>(least, m, p, pose, near);
    const typename L::M apart = near & (least.apart > V(p.margin + p.gap + rounding));
    if (separation && any(apart)) {
      V local[3];
      rotate_back(local, pose.rot2, least.axis);
      for (int i = 0; i < 3; ++i) {
        store(separation[i], select(apart, -local[i], load(separation[i], static_cast<V*>(nullptr))));
      }
    }
    near = near & flip(apart);
    if (!any(near)) return 0;
    // The nearest points of shapes that are apart, but within the margin, are searched; so are those of a sphere whose
    // centre is outside.
    const V known(g1.shape == kSphere ? -g1.size[0] : rounding);
    store(axis_of[0], select(least.apart <= known, least.face, V(static_cast<float>(kUnknownAxis))));
    for (int i = 0; i < 3; ++i) store(axis_of[1 + i], least.axis[i]);
  }
  const bool remembers = starts.at && remembers_start(m.geom[p.geom1], m.geom[p.geom2], p);
  store(waits, select(near, V(1.0f), V(0.0f)));
  for (int i = 0; i < 3; ++i) store(pose_of[i], pose.pos1[i]), store(pose_of[12 + i], pose.pos2[i]);
  for (int i = 0; i < 9; ++i) store(pose_of[3 + i], pose.rot1[i]), store(pose_of[15 + i], pose.rot2[i]);
  QueuedContact contacts[L::kWidth][kMaxPairContacts];
  int counts[L::kWidth], most = 0;
  for (int lane = 0; lane < L::kWidth; ++lane) {
    counts[lane] = 0;
    if (waits[lane] == 0) continue;
    QueuedShape s1{m.geom + p.geom1, {}, {}}, s2{m.geom + p.geom2, {}, {}};
    for (int i = 0; i < 3; ++i) s1.pos[i] = pose_of[i][lane], s2.pos[i] = pose_of[12 + i][lane];
    for (int i = 0; i < 9; ++i) s1.rot[i] = pose_of[3 + i][lane], s2.rot[i] = pose_of[15 + i][lane];
    const double reach = static_cast<double>(p.margin) + static_cast<double>(p.gap);
    double apart[3];
    QueuedAxis axis{static_cast<int>(axis_of[0][lane]), {}};
    for (int i = 0; i < 3; ++i) axis.direction[i] = axis_of[1 + i][lane];
    SearchStart* const start = remembers ? starts.place(lane, place, static_cast<int>(&p - m.pair)) : nullptr;
#if defined(COHORT_SEARCHES_IN_PLACE)
    counts[lane] = collide::narrow_phase(m, p.kernel, s1, s2, reach, axis, farthest_function<L>(), contacts[lane],
                                         apart, start, *static_cast<collide::SearchSpace*>(search));
#else
    counts[lane] =
        queued_narrow_phase(m, p.kernel, s1, s2, reach, axis, farthest_function<L>(), contacts[lane], apart, start);
#endif
    if (separation && counts[lane] == 0) {
      for (int i = 0; i < 3; ++i) separation[i][lane] = static_cast<float>(apart[i]);
    }
    most = counts[lane] > most ? counts[lane] : most;
  }
  for (int k = 0; k < most; ++k) {
    for (int lane = 0; lane < L::kWidth; ++lane) {
      const bool has = k < counts[lane];
      const QueuedContact& c = contacts[lane][has ? k : 0];
      result[0][lane] = has ? static_cast<float>(c.dist) : kFarApart;
      for (int i = 0; i < 3; ++i) {
        result[1 + i][lane] = has ? static_cast<float>(c.pos[i]) : 0.0f;
        result[4 + i][lane] = has ? static_cast<float>(c.normal[i]) : i == 0 ? 1.0f : 0.0f;
      }
    }
    V* const type = nullptr;
    out[k].dist = load(result[0], type);
    for (int i = 0; i < 3; ++i) {
      out[k].pos[i] = load(result[1 + i], type);
      out[k].normal[i] = load(result[4 + i], type);
      out[k].hint[i] = V(0.0f);
    }
  }
  return most;
}

}  // namespace cohort::sim
