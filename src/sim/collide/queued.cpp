#include "sim/collide/queued.h"

#include "sim/collide/closed.h"
#include "sim/collide/convex.h"
#include "sim/collide/mesh.h"
#include "sim/kernels/pair_kernels.h"

namespace cohort::sim {

int queued_narrow_phase(const ModelView& m, int kernel, const QueuedShape& s1, const QueuedShape& s2, double reach,
                        FarthestVertex farthest, QueuedContact* out, double* apart) {
  for (int i = 0; i < 3; ++i) apart[i] = 0;
  switch (kernel) {
    case kCapsuleBox:
    case kBoxBox:
      return closed_narrow_phase(kernel, s1, s2, reach, out);
    case kConvexConvex:
      return collide::convex_contacts(collide::convex_shape(m, s1, farthest), collide::convex_shape(m, s2, farthest),
                                      reach, out, apart);
    case kPlaneMesh:
      return collide::plane_mesh(m, s1, s2, reach, farthest, out);
    case kHeightFieldConvex:
      return collide::height_field_convex(m, s1, s2, reach, farthest, out);
    default:
      return 0;
  }
}

}  // namespace cohort::sim
