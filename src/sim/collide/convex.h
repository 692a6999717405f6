/// Convex shapes by their support functions: distance (Gilbert, Johnson and Keerthi 1988) and penetration by the
/// expanding polytope (van den Bergen 2001).
#pragma once
#include "sim/collide/queued.h"
#include "sim/collide/vectors.h"

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
  const float* vertices = nullptr;  ///< mesh: in blocks of kVertexBlock, in the shape's frame; prism: (6, 3)
  int vertex_count = 0;
  FarthestVertex farthest = nullptr;  ///< mesh
  // Mesh whose faces are known: the faces, what their first_corner counts from, and where the list of the faces around
  // each vertex begins, relative to here; -1 ends a list.
  const FaceRecord* faces = nullptr;
  const int *indices = nullptr, *vertex_faces = nullptr;
  double radius() const { return shape == kSphere || shape == kCapsule ? size.x : 0; }
  /// The core's farthest point in a direction; which vertex of a box (bit i: on the positive side of axis i) or mesh it
  /// is.
  Vec support(Vec direction, int& vertex) const;
  Vec support(Vec direction) const {
    int vertex;
    return support(direction, vertex);
  }
  /// A vertex of a box or mesh, in the shape's frame.
  Vec vertex(int i) const;
  Vec centre() const { return turn(rot, middle) + pos; }
};

struct Witness {
  double dist = 0;  ///< negative: depth
  Vec on1, on2;     ///< nearest, or deepest, points of the surfaces
  Vec normal;       ///< unit, from shape 1 to shape 2
};

/// Barycentric weights of the point of a triangle nearest to the origin (Ericson 2005, section 5.1.5).
void nearest_on_triangle(Vec a, Vec b, Vec c, double* w);

/// False when the shapes are farther apart than `reach` or, which takes a degenerate shape, no answer is found.
bool convex_distance(const ConvexShape& a, const ConvexShape& b, double reach, Witness& out);

/// Up to four contacts, as MuJoCo makes them: those of the faces and edges that lie on each other (faces.h), or the
/// deepest point. apart: as queued_narrow_phase's, written when there is none and the cores are apart.
int convex_contacts(const ConvexShape& a, const ConvexShape& b, double reach, QueuedContact* out, double* apart);

}  // namespace cohort::sim::collide
