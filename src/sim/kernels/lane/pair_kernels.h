/// The narrow phases that exist; the first shape of a name is PairRecord::geom1.
#pragma once
#include "sim/kernels/lane/device.h"

namespace cohort::sim {

enum PairKernel : int {
  // Computed in the lanes, collide.h and collide_round.h.
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
  // By queue.h: in the lanes as far as they can, otherwise for one environment at a time, queued.h.
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

/// Of more contacts than find a place, those that spread.h chooses: the deepest one and one for each of seven directions
/// and, on a height field, which has room for them, eight further in.
inline constexpr int kSpreadKept = 8, kSpreadInside = 16;
/// Most contacts of a pair, those of a height field.
inline constexpr int kMaxPairContacts = kSpreadInside;

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
      return kSpreadKept;
    case kBoxBox:
      return 8;
    case kHeightFieldConvex:
      return kMaxPairContacts;
    default:
      return 1;
  }
}

/// Corner k of a box's face: +x, -x, +y, -y, +z, -z, counterclockwise seen from outside. Bit i of a corner: on the
/// positive side of axis i.
COHORT_DEVICE inline int box_corner(int face, int k) {
  const unsigned char corner[6][4] = {{5, 1, 3, 7}, {0, 4, 6, 2}, {6, 7, 3, 2},
                                      {0, 1, 5, 4}, {4, 5, 7, 6}, {1, 0, 2, 3}};
  return corner[face][k];
}

/// Cosine between normals of faces that lie on each other, and between an edge and the normal of its face: five
/// degrees.
inline constexpr double kFacing = 0.996, kAlong = 0.0888;
/// Pairs of faces whose cosines differ by no more face each other alike: the first counts, in any precision.
inline constexpr double kFacesAlike = 1e-6;
/// Cosine between the contact's normal and that of a face that lies on the other shape: ten degrees.
inline constexpr double kTowards = 0.985;
/// Most contacts of faces, or an edge and a face, that lie on each other.
inline constexpr int kFewContacts = 4;

/// Whether the direction along which a pair's shapes are apart is remembered (separation.h).
COHORT_DEVICE inline constexpr bool remembers_separation(int kernel) {
  return kernel == kConvexConvex;
}

}  // namespace cohort::sim
