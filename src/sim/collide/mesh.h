/// Meshes against planes, and height fields against convex shapes.
#pragma once
#include "sim/collide/convex.h"

namespace cohort::sim::collide {

/// Throws nothing; the shape points into the model.
ConvexShape convex_shape(const ModelView& m, const QueuedShape& s, FarthestVertex farthest);

/// The lowest corner of the mesh and up to two of its neighbours that are near the plane as well.
int plane_mesh(const ModelView& m, const QueuedShape& plane, const QueuedShape& mesh, double reach,
               FarthestVertex farthest, QueuedContact* out);

/// One contact for each of the field's prisms that the shape meets; the deepest kMaxPairContacts of them.
int height_field_convex(const ModelView& m, const QueuedShape& field, const QueuedShape& shape, double reach,
                        FarthestVertex farthest, QueuedContact* out);

}  // namespace cohort::sim::collide
