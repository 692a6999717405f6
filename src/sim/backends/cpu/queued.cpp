#include "sim/kernels/collide/convex/queued.h"

#include "sim/kernels/collide/convex/narrow_phases.h"

namespace cohort::sim {

int queued_narrow_phase(const ModelView& m, int kernel, const QueuedShape& s1, const QueuedShape& s2, double reach,
                        FarthestVertex farthest, QueuedContact* out, double* apart) {
  collide::SearchSpace space;
  return collide::narrow_phase(m, kernel, s1, s2, reach, farthest, out, apart, space);
}

bool sphere_and_prism(const float* prism, const float* centre, float radius, float reach, float* out) {
  return collide::near_prism(prism, centre, radius, reach, out);
}

bool prism_and_shape(const ModelView& m, const float* prism, const QueuedShape& shape, float reach,
                     FarthestVertex farthest, float* out) {
  collide::SearchSpace space;
  return collide::prism_and_shape(m, prism, shape, reach, farthest, out, space);
}

}  // namespace cohort::sim
