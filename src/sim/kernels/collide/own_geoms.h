/// Geoms that environments have of their own: where they are, and sizes of primitive shapes (ModelView::varies).
#pragma once
#include "sim/kernels/collide/collide.h"
#include "sim/kernels/lane/constraints.h"

namespace cohort::sim {

/// One of the values of geom k in Workspace::geom_values; k counts the geoms that rays meet behind those that may touch.
template <class L>
COHORT_LANE typename L::V own_value(const Workspace<L>& w, int k, int value) {
  return w.geom_values[kGeomValues * k + value];
}
template <class L>
COHORT_LANE typename L::V own_radius(const Workspace<L>& w, int k) {
  return own_value<L>(w, k, kOwnRadius);
}

/// As frame_pose() of a geom's record.
template <class L>
COHORT_LANE void own_geom_pose(const Workspace<L>& w, int k, int body, typename L::V* pos, typename L::V* rot) {
  using V = typename L::V;
  const auto from = w.geom_values + kGeomValues * k;
  read<3>(pos, from + kOwnPos);
  read<9>(rot, from + kOwnRot);
  if (body < 0) return;
  V R[9], x[3];
  read<9>(R, w.rot + 9 * body);
  read<3>(x, w.pos + 3 * body);
  rotate(pos, R, pos);
  for (int i = 0; i < 3; ++i) pos[i] += x[i];
  multiply3(rot, R, rot);
}

/// geom_poses() where environments have their own.
/// Reads w.rot, w.pos, w.geom_values; writes c.geom_pos, c.geom_rot.
template <class L>
COHORT_KERNEL void own_geom_poses(const ModelView& m, const Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int k = 0; k < m.ngeom; ++k) {
    const GeomRecord& geom = m.geom[k];
    V pos[3], rot[9];
    own_geom_pose<L>(w, k, geom.body, pos, rot);
    if (geom.shape == kSphere && geom.body >= 0) {
      for (int i = 0; i < 3; ++i) rot[3 * i + 2] = V(0.0f);  // as in geom_poses()
    }
    write<3>(c.geom_pos + 3 * k, pos);
    write<9>(c.geom_rot + 9 * k, rot);
  }
}

/// The one lane of a block.
template <class L>
COHORT_LANE typename L::M only_lane(int lane) {
  using V = typename L::V;
  alignas(64) float one[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) one[i] = i == lane ? 1.0f : 0.0f;
  V* const type = nullptr;
  return load(one, type) > V(0.5f);
}

/// Lanes in which geom k has the size of `model`.
template <class L>
COHORT_LANE typename L::M has_models_size(const Workspace<L>& w, int k, const GeomRecord& model) {
  using V = typename L::V;
  auto same = V(0.0f) == V(0.0f);
  for (int i = 0; i < 3; ++i) same = same & (own_value<L>(w, k, kOwnSize + i) == V(model.size[i]));
  return same;
}

/// Gives a geom the size, radius and box that geom k has in a lane.
template <class L>
COHORT_LANE void take_own_size(GeomRecord& geom, const Workspace<L>& w, int k, int lane) {
  alignas(64) float row[L::kWidth];
  const auto value = [&](int which) {
    store(row, own_value<L>(w, k, which));
    return row[lane];
  };
  for (int i = 0; i < 3; ++i) geom.size[i] = value(kOwnSize + i);
  geom.radius = value(kOwnRadius);
  for (int i = 0; i < 6; ++i) geom.box[i] = value(kOwnBox + i);
}

}  // namespace cohort::sim
