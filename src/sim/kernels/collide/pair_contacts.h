/// From a pair of geoms that may touch to its contacts: bounds first, then the pair's narrow phase.
#pragma once
#include "sim/kernels/collide/bounds.h"
#include "sim/kernels/collide/collide_round.h"
#include "sim/kernels/collide/near_pairs.h"
#include "sim/kernels/collide/own_geoms.h"
#include "sim/kernels/collide/queue.h"

namespace cohort::sim {

/// Where a pair's geoms are, and tree_shift of their trees.
template <class L>
COHORT_LANE void pair_positions(PairPose<typename L::V>& pose, const Workspace<L>& w, const Constraints<L>& c,
                                const PairBoundRecord& b, typename L::V* shift1) {
  read<3>(pose.pos1, c.geom_pos + 3 * b.geom1);
  read<3>(pose.pos2, c.geom_pos + 3 * b.geom2);
  tree_shift<L>(w, b.root1, b.root2, shift1);
  for (int i = 0; i < 3; ++i) pose.pos1[i] -= shift1[i];
}

/// Contacts of a pair in the lanes of `near`, from which it takes those that bounds show to be apart: returns how many
/// the fullest lane has, contacts beyond the pair's reach among them. shift1: tree_shift of the pair's trees. b: of the
/// pair; p: likewise, and its geoms are those of `m`, which may be others than b's where environments have their own.
template <class L>
COHORT_LANE int contacts_of_pair(ContactPoint<typename L::V>* points, const ModelView& m, const Workspace<L>& w,
                                 const Constraints<L>& c, const PairBoundRecord& b, const PairRecord& p,
                                 typename L::M& near, typename L::V* shift1) {
  using V = typename L::V;
  const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
  PairPose<V> pose;
  pair_positions<L>(pose, w, c, b, shift1);
  V d[3];
  for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i];
  const auto rot1 = c.geom_rot + 9 * b.geom1, rot2 = c.geom_rot + 9 * b.geom2;
  const bool boxed = p.kernel >= kFirstQueued && g1.box[3] > 0 && g2.box[3] > 0;
  const bool larger1 = g1.radius > g2.radius;
  const GeomRecord& larger = larger1 ? g1 : g2;
  if (boxed && larger.shape != kSphere && larger.shape != kCapsule) {
    V to[3], rot[9];
    for (int i = 0; i < 3; ++i) to[i] = larger1 ? d[i] : -d[i];
    read<9>(rot, larger1 ? rot1 : rot2);
    near = box_near_sphere<L>(larger, rot, to, larger1 ? g2 : g1, b.reach, near);
    if (!any(near)) return 0;
  }
  read<9>(pose.rot1, rot1);
  read<9>(pose.rot2, rot2);
  if (p.kernel == kPlaneMesh) {
    V height;
    (void)plane_near<L>(b.bound, rot1, d, height);
    near = box_near_plane<L>(g2, pose, height, b.reach, near);
    if (!any(near)) return 0;
  }
  if (boxed) {
    near = boxes_near<L>(g1, g2, pose, b.reach, near);
    if (!any(near)) return 0;
  }
  if (c.separations.at && b.separation >= 0) {
    V local[3];
    for (int i = 0; i < 3; ++i) {
      local[i] = load_of<L>(c.separations.component(b.separation, i), c.separations.envs);
    }
    const V zero(0.0f);
    const auto known = near & ((local[0] != zero) | (local[1] != zero) | (local[2] != zero));
    if (any(known)) {
      near = (near & flip(known)) | not_separated<L>(m, g1, g2, pose, local, b.reach, known);
      if (!any(near)) return 0;
    }
  }
  if (p.kernel >= kFirstQueued) {
    return queue_narrow_phase<L>(points, m, p, pose, near, c.separations, b.separation, c.search);
  }
  narrow_phase(points, p.kernel, pose, g1.size, g2.size, V(b.reach));
  return p.max_contacts;
}

/// contacts_of_pair() of pair k.
template <class L>
COHORT_LANE int pair_contacts(ContactPoint<typename L::V>* points, const ModelView& m, const Workspace<L>& w,
                              const Constraints<L>& c, int k, typename L::M& near, typename L::V* shift1) {
  return contacts_of_pair<L>(points, m, w, c, m.pair_bound[k], m.pair[k], near, shift1);
}

/// The same where environments have geoms of their own size. Narrow phases of the lanes alone take the lanes' sizes; of
/// the others come first the lanes in which this pair's geoms have the model's, then the rest one by one, each with geoms
/// of its own.
template <class L>
COHORT_KERNEL int own_pair_contacts(ContactPoint<typename L::V>* points, const ModelView& m, const Workspace<L>& w,
                                    const Constraints<L>& c, int k, typename L::M& near, typename L::V* shift1) {
  using V = typename L::V;
  using M = typename L::M;
  const PairBoundRecord& b = m.pair_bound[k];
  if (m.pair[k].kernel < kFirstQueued) {
    PairPose<V> pose;
    pair_positions<L>(pose, w, c, b, shift1);
    read<9>(pose.rot1, c.geom_rot + 9 * b.geom1);
    read<9>(pose.rot2, c.geom_rot + 9 * b.geom2);
    V size1[3], size2[3];
    for (int i = 0; i < 3; ++i) {
      size1[i] = own_value<L>(w, b.geom1, kOwnSize + i), size2[i] = own_value<L>(w, b.geom2, kOwnSize + i);
    }
    narrow_phase(points, m.pair[k].kernel, pose, size1, size2, V(b.reach));
    return m.pair[k].max_contacts;
  }
  GeomRecord geoms[2] = {m.geom[b.geom1], m.geom[b.geom2]};
  PairRecord p = m.pair[k];
  p.geom1 = 0, p.geom2 = 1;
  ModelView own = m;
  own.geom = geoms;
  const M as_model = has_models_size<L>(w, b.geom1, geoms[0]) & has_models_size<L>(w, b.geom2, geoms[1]);
  M found = near & flip(near);
  int most = 0;
  for (int lane = -1; lane < L::kWidth; ++lane) {
    M here = near & (lane < 0 ? as_model : flip(as_model) & only_lane<L>(lane));
    if (!any(here)) continue;
    if (lane >= 0) take_own_size<L>(geoms[0], w, b.geom1, lane), take_own_size<L>(geoms[1], w, b.geom2, lane);
    ContactPoint<V> some[kMaxPairContacts];
    const int count = contacts_of_pair<L>(some, own, w, c, b, p, here, shift1);
    for (; most < count; ++most) {
      ContactPoint<V>& none = points[most];
      none.dist = V(kFarApart);
      for (int i = 0; i < 3; ++i) none.pos[i] = none.hint[i] = V(0.0f), none.normal[i] = V(i == 0 ? 1.0f : 0.0f);
    }
    for (int i = 0; i < count; ++i) {
      points[i].dist = select(here, some[i].dist, points[i].dist);
      for (int j = 0; j < 3; ++j) {
        points[i].pos[j] = select(here, some[i].pos[j], points[i].pos[j]);
        points[i].normal[j] = select(here, some[i].normal[j], points[i].normal[j]);
        points[i].hint[j] = select(here, some[i].hint[j], points[i].hint[j]);
      }
    }
    found = found | here;
  }
  near = found;
  return most;
}

}  // namespace cohort::sim
