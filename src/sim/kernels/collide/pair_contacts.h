/// From a pair of geoms that may touch to its contacts: bounds first, then the pair's narrow phase.
#pragma once
#include "sim/kernels/collide/bounds.h"
#include "sim/kernels/collide/collide_round.h"
#include "sim/kernels/collide/near_pairs.h"
#include "sim/kernels/collide/queue.h"

namespace cohort::sim {

/// Contacts of pair k in the lanes of `near`, from which it takes those that bounds show to be apart: returns how many
/// the fullest lane has, contacts beyond the pair's reach among them. shift1: tree_shift of the pair's trees.
template <class L>
COHORT_LANE int pair_contacts(ContactPoint<typename L::V>* points, const ModelView& m, const Workspace<L>& w,
                              const Constraints<L>& c, int k, typename L::M& near, typename L::V* shift1) {
  using V = typename L::V;
  const PairBoundRecord& b = m.pair_bound[k];
  const PairRecord& p = m.pair[k];
  const GeomRecord &g1 = m.geom[b.geom1], &g2 = m.geom[b.geom2];
  PairPose<V> pose;
  read<3>(pose.pos1, c.geom_pos + 3 * b.geom1);
  read<3>(pose.pos2, c.geom_pos + 3 * b.geom2);
  V d[3];
  tree_shift<L>(w, b.root1, b.root2, shift1);
  for (int i = 0; i < 3; ++i) pose.pos1[i] -= shift1[i];
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
    near = box_near_plane<L>(m.geom[b.geom2], pose, height, b.reach, near);
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

}  // namespace cohort::sim
