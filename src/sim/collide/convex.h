/// Convex shapes by their support functions: distance (Gilbert, Johnson and Keerthi 1988) and penetration by the
/// expanding polytope (van den Bergen 2001).
#pragma once
#include "sim/collide/queued.h"
#include "sim/collide/vectors.h"

namespace cohort::sim::collide {

/// A shape as a core and a radius around it: a sphere is a point, a capsule a segment.
struct ConvexShape {
  int shape = 0;  ///< GeomShape
  Vec size;
  Vec pos;
  Vec middle;  ///< a point inside, in the shape's frame
  double rot[9];
  const float* vertices = nullptr;  ///< mesh: (count, 3), in the shape's frame
  int vertex_count = 0;
  const int* edges =
      nullptr;  ///< mesh: where the list of each vertex' neighbours begins, relative to here; -1 ends a list
  mutable int last_vertex = 0;  ///< mesh with edges: where the last search ended and the next one begins
  double radius() const { return shape == kSphere || shape == kCapsule ? size.x : 0; }
  /// The core's farthest point in a direction.
  Vec support(Vec direction) const;
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

/// Up to five contacts: the deepest point, and for shapes with flat parts those that both shapes, turned by a
/// thousandth of a radian either way, touch at.
int convex_contacts(const ConvexShape& a, const ConvexShape& b, double bound, double reach, QueuedContact* out);

}  // namespace cohort::sim::collide
