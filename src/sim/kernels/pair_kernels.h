/// The narrow phases that exist; the first shape of a name is PairRecord::geom1.
#pragma once
#include "sim/kernels/device.h"

namespace cohort::sim {

enum PairKernel : int {
  // Computed in the lanes, kernels/collide.h and kernels/collide_round.h.
  kPlaneSphere = 0,
  kPlaneCapsule = 1,
  kPlaneBox = 2,
  kSphereSphere = 3,
  kSphereCapsule = 4,
  kCapsuleCapsule = 5,
  kPlaneEllipsoid = 6,
  kPlaneCylinder = 7,
  kSphereBox = 8,
  kSphereCylinder = 9,
  // Computed for one environment at a time, collide/queued.h.
  kFirstQueued = 20,
  kCapsuleBox = 20,
  kBoxBox = 21,
  kConvexConvex = 22,  ///< any two of sphere, capsule, ellipsoid, cylinder, box, mesh
  kPlaneMesh = 23,
  kHeightFieldConvex = 24,
};

/// Whether the direction along which a pair's shapes are apart is remembered (separation.h).
COHORT_DEVICE inline constexpr bool remembers_separation(int kernel) {
  return kernel == kConvexConvex;
}

}  // namespace cohort::sim
