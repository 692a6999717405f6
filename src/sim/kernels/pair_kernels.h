/// The narrow phases that exist; the first shape of a name is PairRecord::geom1.
#pragma once

namespace cohort::sim {

enum PairKernel : int {
  kPlaneSphere = 0,
  kPlaneCapsule = 1,
  kPlaneBox = 2,
  kSphereSphere = 3,
  kSphereCapsule = 4,
  kCapsuleCapsule = 5,
};

}  // namespace cohort::sim
