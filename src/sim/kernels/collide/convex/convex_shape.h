/// Convex shapes by their support functions.
#pragma once
#include "sim/kernels/collide/convex/farthest.h"
#include "sim/kernels/collide/convex/queued.h"
#include "sim/kernels/collide/convex/vectors.h"

namespace cohort::sim::collide {

/// ConvexShape::shape of a height field's prism: six corners, three at the bottom, three above them.
inline constexpr int kPrism = 100;

/// A shape as a core and a radius around it: a sphere is a point, a capsule a segment.
struct ConvexShape {
  int shape = 0;  ///< GeomShape or kPrism
  Vec size;
  Vec pos;
  Vec middle;  ///< a point inside, in the shape's frame
  double rot[9];
  bool unturned = false;            ///< its frame is the one that the shapes share: rot is 1, pos is 0
  const float* vertices = nullptr;  ///< mesh: in blocks of kVertexBlock, in the shape's frame; prism: (6, 3)
  int vertex_count = 0;
  FarthestVertex farthest = nullptr;  ///< mesh, on a CPU
  // Mesh whose faces are known: the faces, what their first_corner counts from, and where the list of the faces around
  // each vertex begins, relative to here; -1 ends a list.
  const FaceRecord* faces = nullptr;
  int face_count = 0;
  const int *indices = nullptr, *vertex_faces = nullptr;
  /// Mesh: as vertex_faces, of the vertices that edges connect with each; null: not known.
  const int* neighbours = nullptr;

  COHORT_DEVICE double radius() const { return shape == kSphere || shape == kCapsule ? size.x : 0; }
  COHORT_DEVICE Vec centre() const { return to_shared(middle); }
  /// A point and a direction of the shape's frame in the shared one, and a direction of the shared one in the shape's.
  COHORT_DEVICE Vec to_shared(Vec p) const { return unturned ? p : turn(rot, p) + pos; }
  COHORT_DEVICE Vec along_shared(Vec d) const { return unturned ? d : turn(rot, d); }
  COHORT_DEVICE Vec along_own(Vec d) const { return unturned ? d : turn_back(rot, d); }

  /// Whether a box's or mesh's edges are known.
  COHORT_DEVICE bool known_neighbours() const { return shape == kBox || neighbours != nullptr; }
  /// Vertices of a box or mesh.
  COHORT_DEVICE int corners() const { return shape == kBox ? 8 : vertex_count; }
  /// A vertex of a box or mesh, in the shape's frame.
  COHORT_DEVICE Vec vertex(int i) const {
    if (shape == kBox) return {i & 1 ? size.x : -size.x, i & 2 ? size.y : -size.y, i & 4 ? size.z : -size.z};
    const float* v = vertices + i / kVertexBlock * 3 * kVertexBlock + i % kVertexBlock;
    return {static_cast<double>(v[0]), static_cast<double>(v[kVertexBlock]), static_cast<double>(v[2 * kVertexBlock])};
  }

  /// The mesh's vertex that lies farthest in a direction of its frame.
  COHORT_DEVICE int farthest_along(Vec d) const {
    const float x = static_cast<float>(d.x), y = static_cast<float>(d.y), z = static_cast<float>(d.z);
#if defined(__CUDA_ARCH__)
    return farthest_vertex<ScalarLane>(vertices, vertex_count, x, y, z);
#else
    return farthest(vertices, vertex_count, x, y, z);
#endif
  }

  /// The core's farthest point in a direction; which vertex of a box (bit i: on the positive side of axis i) or mesh it
  /// is.
  COHORT_SEARCH Vec support(Vec direction, int& which) const {
    which = 0;
    Vec p;
    if (shape == kPrism) {
      // The lower triangle or the upper one; a prism's frame is the one that the search is made in.
      double best = -1e300;
      for (int i = direction.z > 0 ? 3 : 0, end = i + 3; i < end; ++i) {
        const Vec corner = prism_corner(vertices, i);
        const double height = dot(direction, corner);
        if (height > best) best = height, p = corner;
      }
      return p;
    }
    const Vec d = along_own(direction);
    switch (shape) {
      case kCapsule:
        p.z = d.z > 0 ? size.y : -size.y;
        break;
      case kEllipsoid: {
        const Vec scaled{d.x * size.x, d.y * size.y, d.z * size.z};
        const double length = norm(scaled);
        if (length > 0) p = {scaled.x * size.x / length, scaled.y * size.y / length, scaled.z * size.z / length};
        break;
      }
      case kCylinder: {
        const double across = root(d.x * d.x + d.y * d.y);
        if (across > 1e-15) p.x = d.x / across * size.x, p.y = d.y / across * size.x;
        p.z = d.z > 0 ? size.y : -size.y;
        break;
      }
      case kBox:
        which = (d.x > 0 ? 1 : 0) | (d.y > 0 ? 2 : 0) | (d.z > 0 ? 4 : 0);
        p = vertex(which);
        break;
      case kMesh:
        which = farthest_along(d);
        p = vertex(which);
        break;
      default:
        break;
    }
    return to_shared(p);
  }
  COHORT_DEVICE Vec support(Vec direction) const {
    int vertex;
    return support(direction, vertex);
  }

  /// Corner i of a height field's prism.
  COHORT_DEVICE static Vec prism_corner(const float* points, int i) {
    return {static_cast<double>(points[3 * i]), static_cast<double>(points[3 * i + 1]),
            static_cast<double>(points[3 * i + 2])};
  }
};

/// The shape points into the model.
COHORT_DEVICE inline ConvexShape convex_shape(const ModelView& m, const QueuedShape& s, FarthestVertex farthest) {
  ConvexShape c;
  c.shape = s.geom->shape;
  c.size = {static_cast<double>(s.geom->size[0]), static_cast<double>(s.geom->size[1]),
            static_cast<double>(s.geom->size[2])};
  c.pos = vec(s.pos);
  // The lanes give a sphere no axes and a capsule its own only.
  for (int i = 0; i < 9; ++i) {
    c.rot[i] = c.shape != kSphere && (c.shape != kCapsule || i % 3 == 2) ? s.rot[i] : 0.0;
  }
  if (c.shape == kMesh) {
    const MeshRecord& mesh = m.mesh[s.geom->data];
    c.vertices = m.mesh_vertex + mesh.first_vertex;
    c.vertex_count = mesh.vertex_count;
    c.farthest = farthest;
    if (mesh.first_edge >= 0) c.neighbours = m.mesh_edge + mesh.first_edge;
    if (mesh.face_count > 0) {
      c.faces = m.mesh_face + mesh.first_face;
      c.face_count = mesh.face_count;
      c.indices = m.mesh_edge;
      c.vertex_faces = m.mesh_edge + mesh.first_vertex_face;
    }
  }
  return c;
}

}  // namespace cohort::sim::collide
