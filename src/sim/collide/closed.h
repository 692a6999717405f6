/// The queued narrow phases that need little memory and no search: what a device computes as the CPU does.
#pragma once
#include "sim/collide/box_box.h"
#include "sim/collide/capsule_box.h"
#include "sim/collide/queued.h"
#include "sim/kernels/pair_kernels.h"

namespace cohort::sim {

/// True for the kernels of closed_narrow_phase. The others (searches over convex shapes, meshes and height fields) take
/// tens of kilobytes of stack for each environment.
COHORT_DEVICE inline bool is_closed(int kernel) {
  return kernel == kCapsuleBox || kernel == kBoxBox;
}

/// As queued_narrow_phase, for kernels that is_closed; 0 for others.
COHORT_DEVICE inline int closed_narrow_phase(int kernel, const QueuedShape& s1, const QueuedShape& s2, double reach,
                                             QueuedContact* out) {
  if (kernel == kCapsuleBox) return collide::capsule_box(s1, s2, reach, out);
  if (kernel == kBoxBox) return collide::box_box(s1, s2, reach, out);
  return 0;
}

}  // namespace cohort::sim
