/// Where the geoms that may touch are, and boxes around those of each tree.
#pragma once
#include "sim/kernels/collide/collide.h"
#include "sim/kernels/collide/own_geoms.h"
#include "sim/kernels/lane/constraints.h"

namespace cohort::sim {

/// Poses of the geoms that may touch.
/// Reads w.rot, w.pos; writes c.geom_pos, c.geom_rot.
template <class L>
COHORT_KERNEL void geom_poses(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  if (m.varies & kVariesGeoms) return own_geom_poses<L>(m, w, c);
  for (int k = 0; k < m.ngeom; ++k) {
    const GeomRecord& geom = m.geom[k];
    const auto pos = c.geom_pos + 3 * k, rot = c.geom_rot + 9 * k;
    if (geom.body < 0) {
      for (int i = 0; i < 3; ++i) pos[i] = V(geom.pos[i]);
      for (int i = 0; i < 9; ++i) rot[i] = V(geom.rot[i]);
      continue;
    }
    V R[9], x[3], p[3];
    read<9>(R, w.rot + 9 * geom.body);
    read<3>(x, w.pos + 3 * geom.body);
    rotate(p, R, geom.pos);
    for (int i = 0; i < 3; ++i) pos[i] = p[i] + x[i];
    if (geom.shape == kCapsule) {
      const float axis[3] = {geom.rot[2], geom.rot[5], geom.rot[8]};
      V a[3];
      rotate(a, R, axis);
      for (int i = 0; i < 3; ++i) rot[3 * i + 2] = a[i];
    } else if (geom.shape == kSphere) {
      for (int i = 0; i < 3; ++i) rot[3 * i + 2] = V(0.0f);  // a capsule without length
    } else {
      multiply3(R, R, geom.rot);
      write<9>(rot, R);
    }
  }
}

/// Boxes around the geoms of each tree, as their bounding spheres are.
/// Reads c.geom_pos; writes c.tree_box.
template <class L>
COHORT_KERNEL void tree_boxes(const ModelView& m, Constraints<L>& c) {
  using V = typename L::V;
  for (int b = 0; b < m.nbody; ++b) {
    if (m.body[b].root != b) continue;
    const auto box = c.tree_box + 6 * b;
    for (int i = 0; i < 3; ++i) box[i] = V(kFarApart), box[3 + i] = V(-kFarApart);
  }
  for (int k = 0; k < m.ngeom; ++k) {
    const GeomRecord& g = m.geom[k];
    if (g.body < 0) continue;
    const auto box = c.tree_box + 6 * m.body[g.body].root, pos = c.geom_pos + 3 * k;
    for (int i = 0; i < 3; ++i) {
      box[i] = min(V(box[i]), pos[i] - V(g.radius));
      box[3 + i] = max(V(box[3 + i]), pos[i] + V(g.radius));
    }
  }
}

}  // namespace cohort::sim
