/// The contacts of both engines for one state, pair of geoms by pair of geoms.
#pragma once
#include <string>
#include <vector>

#include "block.h"
#include "findings.h"
#include "reference_answer.h"

namespace cohort::sim::test {

/// Of a contact of ours from MuJoCo's: distance and place, m; the normal's components, and the first tangent's.
struct ContactDifference {
  double dist = 0, place = 0, normal = 0, tangent = 0;
};

struct ContactVerdict {
  bool same = true;   ///< the lists hold the same contacts, so that their rows may be compared
  bool exact = true;  ///< and they agree so well that the same accelerations follow from them
  /// Sensors list the same: no contact was left out of the comparison, as those are of geoms that cannot move against
  /// each other, and the tangents are the same.
  bool same_lists = true;
  /// The tangents span the same cones and pyramids: they may be opposite or, where the friction is the same, swapped.
  bool same_cones = true;
  std::vector<ContactDifference> difference;  ///< (ncon), where `same`
  std::vector<Finding> findings;
  std::vector<std::string> excuses;  ///< why a pair may differ as it does
};

/// `state` of make_rows in b; view.keep_contacts is set.
ContactVerdict compare_contacts(const mjModel& m, const ReferenceAnswer& answer, const ModelView& view,
                                BlockSpace<ScalarLane>& b);

/// How far a convex geom reaches along a unit direction where it is, from the world's origin, m.
double reach_in_world(const mjModel& m, const mjData& d, int geom, const double n[3]);
/// Signed distance of two convex geoms (planes as well) along a direction from the first to the second, m: the distance
/// of the planes between which nothing of either lies, or less than zero by as much as they overlap. The distance of
/// two geoms is its largest value over all directions.
double separation_along(const mjModel& m, const mjData& d, int geom1, int geom2, const double direction[3]);

}  // namespace cohort::sim::test
