/// Shapes that lie on each other: the contacts of two faces, or of an edge and a face, that face each other to within
/// five degrees (Sutherland and Hodgman 1974 for the clipping), as MuJoCo makes them of a deepest point.
#pragma once
#include "sim/collide/convex.h"

namespace cohort::sim::collide {

/// True for the shapes that have flat or straight parts: boxes, cylinders, capsules, and meshes whose faces are known.
bool has_features(const ConvexShape& s);

/// Contacts where the shapes' features around the deepest point meet. vertex1, vertex2: of the shapes, three each,
/// those of the face of the Minkowski difference that the depth belongs to; normal: from shape 1 to shape 2. At most
/// eight contacts, each with its own depth, at most four of more; 0: the features do not lie on each other, the deepest
/// point is the only contact.
int face_contacts(const ConvexShape& a, const ConvexShape& b, const int* vertex1, const int* vertex2, Vec normal,
                  double reach, QueuedContact* out);

}  // namespace cohort::sim::collide
