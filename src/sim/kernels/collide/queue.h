/// The lanes' side of the queued narrow phases (queued.h): environments of a block that are near, and whose
/// contacts the lanes do not have by themselves, are taken out of their lanes one by one, and their contacts put back.
#pragma once
#include "sim/kernels/collide/box_box.h"
#include "sim/kernels/collide/convex/farthest.h"
#include "sim/kernels/collide/convex/queued.h"
#include "sim/kernels/collide/height_field_shapes.h"
#include "sim/kernels/collide/plane_mesh.h"
#include "sim/kernels/collide/polytope_contacts.h"
#include "sim/kernels/collide/separation.h"
#if defined(COHORT_SEARCHES_IN_PLACE)
#include "sim/kernels/collide/convex/narrow_phases.h"
#endif

namespace cohort::sim {

/// Contacts of two polytopes, or a sphere and one, as far as the lanes have them: takes the lanes out of `near` that
/// are complete. Returns how many the fullest of those has.
template <class L>
COHORT_LANE int by_axes(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                        const PairPose<typename L::V>& pose, typename L::M& near, const Separations& separations,
                        int place) {
  using V = typename L::V;
  using M = typename L::M;
  const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
  const float rounding = kAxisRounding * (g1.radius + g2.radius);
  const RelativePose<V> relative(pose, g1.shape == kSphere);
  LeastOverlap<V> least;
  least_overlap<L>(least, m, p, relative, near);
  V axis[3];
  rotate(axis, relative.rot1, least.axis);
  const M apart = near & (least.apart > V(p.margin + p.gap + rounding));
  if (separations.at && place >= 0) {
    // None where they are not, so that the next step need not ask.
    V local[3];
    rotate_back(local, pose.rot2, axis);
    for (int i = 0; i < 3; ++i) {
      float* const row = separations.component(place, i);
      const V found = select(apart, -local[i], V(0.0f));
      store_of<L>(row, separations.envs, select(near, found, load_of<L>(row, separations.envs)));
    }
  }
  // The nearest points of shapes that are apart, but within the margin, are searched; so are those of a sphere whose
  // centre is outside.
  const V known(g1.shape == kSphere ? -g1.size[0] : rounding);
  const M overlap = near & flip(apart) & (least.apart <= known);
  near = near & flip(apart | overlap);
  if (!any(overlap)) return 0;
  return g1.shape == kSphere ? sphere_in_polytope<L>(out, m, p, pose, least, axis, overlap)
                             : polytope_contacts<L>(out, m, p, pose, relative, least, overlap);
}

/// Contacts of the lanes in `near`; the other lanes get none. Returns how many contacts the fullest lane has.
/// place: PairBoundRecord::separation, where lanes whose shapes are apart put the direction. search: as
/// Constraints::search.
template <class L>
COHORT_KERNEL int queue_narrow_phase(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                     const PairPose<typename L::V>& pose, typename L::M near,
                                     const Separations& separations, int place, [[maybe_unused]] void* search) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
  if (p.kernel == kHeightFieldConvex && (m.geom[p.geom2].shape != kMesh || p.by_axes != 0)) {
    return height_field_shape<L>(out, m, p, pose, near, search);
  }
  if (p.kernel == kPlaneMesh) return plane_mesh<L>(out, m, p, pose, near);
  if (p.kernel == kBoxBox) return box_box<L>(out, m, p, pose, near);
  int in_lanes = 0;  // contacts that the lanes have found
  if (p.by_axes) {
    in_lanes = by_axes<L>(out, m, p, pose, near, separations, place);
    if (!any(near)) return in_lanes;
  }
  alignas(64) float waits[kLanes], pose_of[24][kLanes], result[7][kLanes];
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
#if defined(COHORT_SEARCHES_IN_PLACE)
    counts[lane] = collide::narrow_phase(m, p.kernel, s1, s2, reach, farthest_function<L>(), contacts[lane], apart,
                                         *static_cast<collide::SearchSpace*>(search));
#else
    counts[lane] = queued_narrow_phase(m, p.kernel, s1, s2, reach, farthest_function<L>(), contacts[lane], apart);
#endif
    if (separations.at && place >= 0 && counts[lane] == 0) {
      for (int i = 0; i < 3; ++i) {
        separations.component(place, i)[separations.envs[lane]] = static_cast<float>(apart[i]);
      }
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
    // Beside what the lanes have found.
    const auto put = [&](V& to, const float* from) {
      to = k < in_lanes ? select(near, load(from, type), to) : load(from, type);
    };
    put(out[k].dist, result[0]);
    for (int i = 0; i < 3; ++i) {
      put(out[k].pos[i], result[1 + i]);
      put(out[k].normal[i], result[4 + i]);
      out[k].hint[i] = V(0.0f);
    }
  }
  return most > in_lanes ? most : in_lanes;
}

}  // namespace cohort::sim
