/// A plane and a mesh.
#pragma once
#include "sim/collide/convex_shape.h"

namespace cohort::sim::collide {

/// Further corners of a mesh on a plane are at least this share of its bounding radius away from the lowest one.
inline constexpr double kSpread = 0.3;
inline constexpr int kPlaneContacts = 3;

/// The lowest corner of the mesh and up to two of its neighbours that are near the plane as well.
COHORT_SEARCH inline int plane_mesh(const ModelView& m, const QueuedShape& plane, const QueuedShape& s, double reach,
                                    FarthestVertex farthest, QueuedContact* out) {
  const MeshRecord& mesh = m.mesh[s.geom->data];
  const Vec normal = column(plane.rot, 2), down = turn_back(s.rot, -normal);
  ConvexShape shape;
  shape.shape = kMesh, shape.vertices = m.mesh_vertex + mesh.first_vertex;
  shape.vertex_count = mesh.vertex_count, shape.farthest = farthest;
  const int lowest = shape.farthest_along(down);
  int count = 0;
  Vec first;
  const auto add = [&](int v) {
    const Vec at = turn(s.rot, shape.vertex(v)) + vec(s.pos);
    if (count > 0 && norm(at - first) < kSpread * static_cast<double>(s.geom->radius)) return;
    const double dist = dot(normal, at - vec(plane.pos));
    if (dist > reach) return;
    const Vec middle = at - (0.5 * dist) * normal;
    if (count == 0) first = middle;
    out[count].dist = dist;
    put(out[count].pos, middle);
    put(out[count].normal, normal);
    ++count;
  };
  add(lowest);
  if (count == 0) return 0;
  if (mesh.first_edge >= 0) {
    const int* edges = m.mesh_edge + mesh.first_edge;
    for (const int* e = edges + edges[lowest]; *e >= 0 && count < kPlaneContacts; ++e) add(*e);
  } else {
    for (int v = 0; v < mesh.vertex_count && count < kPlaneContacts; ++v) {
      if (v != lowest) add(v);
    }
  }
  return count;
}

}  // namespace cohort::sim::collide
