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

inline constexpr bool is_pair_kernel(int kernel) {
  return (kernel >= kPlaneSphere && kernel <= kSphereCylinder) ||
         (kernel >= kFirstQueued && kernel <= kHeightFieldConvex);
}

/// Most contacts of a height field, whose prisms make one each: the deepest count.
inline constexpr int kMaxPairContacts = 16;

/// Contacts that a narrow phase makes at most; deepest_only: of OptionRecord.
inline constexpr int most_contacts(int kernel, bool deepest_only) {
  switch (kernel) {
    case kPlaneCapsule:
    case kCapsuleCapsule:
    case kCapsuleBox:
      return 2;
    case kConvexConvex:
      return deepest_only ? 1 : 4;
    case kPlaneBox:
    case kPlaneCylinder:
      return 4;
    case kPlaneMesh:
      return 3;
    case kBoxBox:
      return 8;
    case kHeightFieldConvex:
      return kMaxPairContacts;
    default:
      return 1;
  }
}

/// Whether the direction along which a pair's shapes are apart is remembered (separation.h).
COHORT_DEVICE inline constexpr bool remembers_separation(int kernel) {
  return kernel == kConvexConvex;
}

}  // namespace cohort::sim
