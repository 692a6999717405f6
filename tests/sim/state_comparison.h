/// The stages of a step and the sensors of one state, ours beside MuJoCo's.
#pragma once
#include <string>

#include "contact_comparison.h"
#include "findings.h"

namespace cohort::sim::test {

/// What the comparisons of a state share.
struct ComparedState {
  const mjModel& m;
  const ReferenceAnswer& answer;
  const ModelView& view;
  const ContactVerdict& contacts;
  double acceleration_error =
      0;  ///< largest difference of qacc from MuJoCo's, which passes; known after the solver only
};

/// Why what follows from the rows cannot be compared in single precision; empty: it can.
std::string why_unsolvable(const ComparedState& s);

/// Compares the rows of make_rows; those that move nothing may be missing on either side.
void compare_rows(const ComparedState& s, Constraints<ScalarLane>& c, Findings& findings);

/// Compares the sensors that need no later stage than `last` (mjtStage), after evaluate and sensors in b.
void compare_sensors(const ComparedState& s, const BlockSpace<ScalarLane>& b, int last, Findings& findings);

/// Body of a connect's or weld's first (0) or second (1) object.
int equality_body(const mjModel& m, int equality, int which);

}  // namespace cohort::sim::test
