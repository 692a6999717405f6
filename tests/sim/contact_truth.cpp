// How far two geoms are apart along a direction, from how far each reaches: independent of either engine's collisions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "contact_comparison.h"

namespace cohort::sim::test {

namespace {

/// How far a shape at the origin reaches along a unit direction of its own frame, m.
double reach(const mjModel& m, int geom, const double n[3]) {
  const double* size = m.geom_size + 3 * geom;
  switch (m.geom_type[geom]) {
    case mjGEOM_PLANE:
      return n[2] > 1 - 1e-9 ? 0 : std::numeric_limits<double>::infinity();
    case mjGEOM_SPHERE:
      return size[0];
    case mjGEOM_CAPSULE:
      return size[0] + size[1] * std::abs(n[2]);
    case mjGEOM_ELLIPSOID:
      return std::hypot(size[0] * n[0], size[1] * n[1], size[2] * n[2]);
    case mjGEOM_CYLINDER:
      return size[0] * std::hypot(n[0], n[1]) + size[1] * std::abs(n[2]);
    case mjGEOM_BOX:
      return size[0] * std::abs(n[0]) + size[1] * std::abs(n[1]) + size[2] * std::abs(n[2]);
    default:
      break;
  }
  const int mesh = m.geom_dataid[geom];
  double most = -std::numeric_limits<double>::infinity();
  for (int v = m.mesh_vertadr[mesh]; v < m.mesh_vertadr[mesh] + m.mesh_vertnum[mesh]; ++v) {
    const float* p = m.mesh_vert + 3 * v;
    most = std::max(most, p[0] * n[0] + p[1] * n[1] + p[2] * n[2]);
  }
  return most;
}

}  // namespace

double reach_in_world(const mjModel& m, const mjData& d, int geom, const double n[3]) {
  double local[3];
  mju_mulMatTVec3(local, d.geom_xmat + 9 * geom, n);
  return mju_dot3(d.geom_xpos + 3 * geom, n) + reach(m, geom, local);
}

double separation_along(const mjModel& m, const mjData& d, int geom1, int geom2, const double direction[3]) {
  double n[3], back[3];
  mju_copy3(n, direction);
  mju_normalize3(n);
  mju_scl3(back, n, -1);
  return -reach_in_world(m, d, geom1, n) - reach_in_world(m, d, geom2, back);
}

}  // namespace cohort::sim::test
