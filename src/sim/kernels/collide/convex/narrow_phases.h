/// The choice among the queued narrow phases, for a CPU and a GPU alike.
#pragma once
#include "sim/kernels/collide/convex/capsule_box.h"
#include "sim/kernels/collide/convex/height_field_prisms.h"
#include "sim/kernels/collide/convex/sphere_prism.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim::collide {

/// As queued_narrow_phase.
COHORT_DEVICE inline int narrow_phase(const ModelView& m, int kernel, const QueuedShape& s1, const QueuedShape& s2,
                                      double reach, FarthestVertex farthest, QueuedContact* out, double* apart,
                                      SearchSpace& space) {
  for (int i = 0; i < 3; ++i) apart[i] = 0;
  switch (kernel) {
    case kCapsuleBox:
      return capsule_box(s1, s2, reach, out);
    case kConvexConvex:
      return convex_pair(m, s1, s2, reach, farthest, out, apart, space);
    case kHeightFieldConvex:
      return height_field_convex(m, s1, s2, reach, farthest, out, space);
    default:
      return 0;
  }
}

}  // namespace cohort::sim::collide
