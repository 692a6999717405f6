/// The lanes' side of the queued narrow phases (collide/queued.h): environments of a block that are near are taken out
/// of their lanes one by one, and their contacts put back.
#pragma once
#if defined(__CUDACC__)
#include "sim/collide/closed.h"
#endif
#include "sim/collide/queued.h"
#include "sim/kernels/height_field.h"
#include "sim/kernels/separation.h"

namespace cohort::sim {

/// FarthestVertex (collide/queued.h): as many vertices at once as there are lanes.
template <class L>
COHORT_KERNEL int farthest_vertex(const float* blocks, int count, float x, float y, float z) {
  using V = typename L::V;
  const V dx(x), dy(y), dz(z), step(static_cast<float>(L::kWidth));
  alignas(64) float first[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) first[i] = static_cast<float>(i);
  V index = load(first, static_cast<V*>(nullptr)), best(-3e38f), at(0.0f);
  // A block is filled up with its first vertex: the padding never wins against it.
  for (int block = 0; block < count; block += kVertexBlock, blocks += 3 * kVertexBlock) {
    for (int i = 0; i < kVertexBlock; i += L::kWidth) {
      const V px = load_anywhere(blocks + i, static_cast<V*>(nullptr));
      const V py = load_anywhere(blocks + kVertexBlock + i, static_cast<V*>(nullptr));
      const V pz = load_anywhere(blocks + 2 * kVertexBlock + i, static_cast<V*>(nullptr));
      const V height = fma(px, dx, fma(py, dy, pz * dz));
      const auto higher = height > best;
      best = select(higher, height, best);
      at = select(higher, index, at);
      index = index + step;
    }
  }
  alignas(64) float heights[L::kWidth], places[L::kWidth];
  store(heights, best), store(places, at);
  float most = heights[0], where = places[0];
  for (int i = 1; i < L::kWidth; ++i) {
    if (heights[i] > most || (heights[i] == most && places[i] < where)) most = heights[i], where = places[i];
  }
  return static_cast<int>(where);
}

/// Contacts of the lanes in `near`; the other lanes get none. Returns how many contacts the fullest lane has.
/// separation: as Separations::component, where lanes whose shapes are apart put the direction; null where none is
/// remembered.
template <class L>
COHORT_KERNEL int queue_narrow_phase(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                     const PairPose<typename L::V>& pose, typename L::M near,
                                     float* const* separation) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
#if !defined(__CUDACC__)
  if (p.kernel == kHeightFieldConvex && m.geom[p.geom2].shape == kSphere) {
    return height_field_sphere<L>(out, m, p, pose, near);
  }
#endif
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
#if defined(__CUDACC__)
    counts[lane] = closed_narrow_phase(p.kernel, s1, s2, reach, contacts[lane]);  // cuda/engine.cpp refuses the others
#else
    double apart[3];
    counts[lane] = queued_narrow_phase(m, p.kernel, s1, s2, reach, farthest_vertex<L>, contacts[lane], apart);
    if (separation && counts[lane] == 0) {
      for (int i = 0; i < 3; ++i) separation[i][lane] = static_cast<float>(apart[i]);
    }
#endif
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
