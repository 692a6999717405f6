// Constraint rows of one state.
#include <algorithm>
#include <cmath>

#include "constraint_rows.h"
#include "core/format.h"
#include "state_comparison.h"

namespace cohort::sim::test {

namespace {

/// Of a row's Jacobian and reference acceleration (row_difference), and of its weight, relative.
constexpr double kRowTolerance = 1e-3, kWeightTolerance = 5e-3;
/// Rows of a smaller Jacobian are not made by one of the engines and make no difference in the other.
constexpr double kMovesNothing = 5e-3;
/// Of Jacobians that are zero but for rounding.
constexpr double kZero = 1e-6, kHardlyMoves = 1e-5;
/// Times what the difference of a contact's normal and place makes of its rows: an edge of a pyramid is the normal and
/// a tangent times a friction of up to 1.5.
constexpr double kContactShare = 6;
/// A contact yields by at least kLeastCompliance of what the bodies do; this close to it both roundings count.
constexpr double kStiff = 1.5;
/// Weight of rows that yield to nothing but MuJoCo's least number: of bodies without inverse weight.
constexpr double kRigid = 1e10;

const char* row_kind(int type) {
  switch (type) {
    case mjCNSTR_EQUALITY:
      return "an equality";
    case mjCNSTR_FRICTION_DOF:
      return "a dof's friction loss";
    case mjCNSTR_FRICTION_TENDON:
      return "a tendon's friction loss";
    case mjCNSTR_LIMIT_JOINT:
      return "a joint's limit";
    case mjCNSTR_LIMIT_TENDON:
      return "a tendon's limit";
    default:
      return "a contact";
  }
}

double largest_element(const Row& row) {
  double most = 0;
  for (double x : row.jacobian) most = std::max(most, std::abs(x));
  return most;
}

Row opposite(Row row) {
  for (double& x : row.jacobian) x = -x;
  row.aref = -row.aref;
  return row;
}

/// By how much the bodies yield to a unit force along the normal of the contact whose first row this is, as
/// kernels/constraint/contacts.h reckons it.
double yields(const mjModel& m, const mjData& d, int first) {
  const Row row = mujoco_row(&m, &d, first);
  std::vector<double> normal = row.jacobian;
  if (d.efc_type[first] == mjCNSTR_CONTACT_PYRAMIDAL) {  // the mean of two opposite edges
    const Row opposite_edge = mujoco_row(&m, &d, first + 1);
    for (std::size_t k = 0; k < normal.size(); ++k) normal[k] = (normal[k] + opposite_edge.jacobian[k]) / 2;
  }
  double sum = 0;
  for (std::size_t k = 0; k < normal.size(); ++k) sum += normal[k] * normal[k] * d.qLDiagInv[k];
  return sum;
}

/// A row that moves something and yields to nothing.
bool has_rigid_row(const mjModel& m, const mjData& d) {
  for (int i = 0; i < d.nefc; ++i) {
    if (d.efc_D[i] >= kRigid && largest_element(mujoco_row(&m, &d, i)) > 0) return true;
  }
  return false;
}

/// A contact stiffer than ours may be.
bool has_stiff_contact(const mjModel& m, const mjData& d) {
  for (int c = 0; c < d.ncon; ++c) {
    const int first = d.contact[c].efc_address;
    if (first < 0) continue;
    if (yields(m, d, first) * d.efc_D[first] * static_cast<double>(kLeastCompliance) * kStiff >= 1) return true;
  }
  return false;
}

/// The difference of a contact decides whether it has rows.
bool touches_at_its_margin(const ComparedState& s) {
  const mjData& d = *s.answer.forward;
  for (int c = 0; c < d.ncon; ++c) {
    const double difference = s.contacts.difference[static_cast<std::size_t>(c)].dist;
    if (difference > 0 && std::abs(d.contact[c].dist - d.contact[c].includemargin) <= 2 * difference) return true;
  }
  return false;
}

bool holds_a_body_to_itself(const ComparedState& s) {
  for (int e = 0; e < s.m.neq; ++e) {
    const int type = s.m.eq_type[e];
    if ((type != mjEQ_CONNECT && type != mjEQ_WELD) || !s.answer.state->eq_active[e]) continue;
    if (s.m.body_weldid[equality_body(s.m, e, 0)] == s.m.body_weldid[equality_body(s.m, e, 1)]) return true;
  }
  return false;
}

struct RowAllowance {
  double row, weight;
};

/// Rounding, and for contacts what follows from the difference that their places, normals and distances may have.
RowAllowance row_allowance(const ComparedState& s, int i) {
  const mjData& d = *s.answer.forward;
  const double noise = kNoise * s.answer.noise.row[static_cast<std::size_t>(i)];
  RowAllowance allowed{kRowTolerance + noise, kWeightTolerance + noise};
  if (d.efc_type[i] < mjCNSTR_CONTACT_FRICTIONLESS) return allowed;
  const ContactDifference& contact = s.contacts.difference[static_cast<std::size_t>(d.efc_id[i])];
  const double* kbip = d.efc_KBIP + 4 * i;  // stiffness, damping, impedance and its slope
  const double turn = contact.normal + contact.place;
  double speed = 0;
  for (int k = 0; k < s.view.nv; ++k) speed += std::abs(d.qvel[k]);
  const double pushed = kbip[0] * (kbip[2] + std::abs(kbip[3] * d.efc_pos[i])) * contact.dist;
  allowed.row += kContactShare * (turn + (pushed + kbip[1] * speed * turn) / (100 + std::abs(d.efc_aref[i])));
  allowed.weight += kContactShare * std::abs(kbip[3]) * contact.dist / (kbip[2] * (1 - kbip[2]));
  return allowed;
}

/// How far a row of ours is from MuJoCo's row i.
double distance(const mjData& d, int i, const Row& ours, const Row& theirs) {
  const double as_is = row_difference(ours, theirs);
  // A quaternion and its opposite are one orientation, so that a weld's row may be the opposite of MuJoCo's; so may a
  // tangent of a cone.
  const bool either = d.efc_type[i] == mjCNSTR_EQUALITY ||
                      (d.efc_type[i] == mjCNSTR_CONTACT_ELLIPTIC && d.contact[d.efc_id[i]].efc_address != i);
  return either ? std::min(as_is, row_difference(opposite(ours), theirs)) : as_is;
}

/// A row of MuJoCo's and one of ours.
struct RowPair {
  double far;  ///< the distance, or a part of the weights' difference where that is more
  double distance;
  int theirs;  ///< in MuJoCo's rows
  std::size_t ours;
};

void compare_pair(const ComparedState& s, const RowPair& pair, const Row& ours, Findings& findings) {
  const mjData& d = *s.answer.forward;
  const int i = pair.theirs;
  // One that is zero but for rounding may have met another one that is.
  if (largest_element(mujoco_row(&s.m, &d, i)) < kHardlyMoves) return;
  const std::string kind = row_kind(d.efc_type[i]), where = format("row {} of {}", i, d.efc_id[i]);
  const RowAllowance allowed = row_allowance(s, i);
  findings.expect("row of " + kind, where, ours.aref, d.efc_aref[i], pair.distance, allowed.row);
  findings.expect("weight of " + kind, where, ours.weight, d.efc_D[i], std::abs(ours.weight / d.efc_D[i] - 1),
                  allowed.weight);
}

bool moves_nothing(const Row& row) {
  return largest_element(row) <= kZero;
}

/// Every row of MuJoCo's with every row of ours, the nearest pairs first.
std::vector<RowPair> row_pairs(const ComparedState& s, const std::vector<Row>& ours) {
  const mjData& d = *s.answer.forward;
  std::vector<RowPair> pairs;
  for (int i = 0; i < d.nefc; ++i) {
    const Row theirs = mujoco_row(&s.m, &d, i);
    if (moves_nothing(theirs)) continue;
    for (std::size_t k = 0; k < ours.size(); ++k) {
      const double here = distance(d, i, ours[k], theirs);
      const double weights = 0.2 * std::min(1.0, std::abs(ours[k].weight / theirs.weight - 1));
      pairs.push_back({std::max(here, weights), here, i, k});
    }
  }
  std::sort(pairs.begin(), pairs.end(), [](const RowPair& a, const RowPair& b) { return a.far < b.far; });
  return pairs;
}

}  // namespace

int equality_body(const mjModel& m, int equality, int which) {
  const int object = which == 0 ? m.eq_obj1id[equality] : m.eq_obj2id[equality];
  return m.eq_objtype[equality] == mjOBJ_SITE ? m.site_bodyid[object] : object;
}

std::string why_unsolvable(const ComparedState& s) {
  const mjData& d = *s.answer.forward;
  if (has_rigid_row(s.m, d)) return "a row without any compliance";
  if (has_stiff_contact(s.m, d)) return "a contact is stiffer than single precision can solve";
  if (!s.contacts.same_cones) return "the tangents of a contact are open";
  if (touches_at_its_margin(s)) return "a contact at its margin to the tolerance of its search";
  if (holds_a_body_to_itself(s)) return "an equality within one rigid body, whose force is all rounding";
  return "";
}

void compare_rows(const ComparedState& s, Constraints<ScalarLane>& c, Findings& findings) {
  const mjData& d = *s.answer.forward;
  std::vector<Row> ours = our_rows(s.view, c);
  ours.erase(std::remove_if(ours.begin(), ours.end(), moves_nothing), ours.end());
  std::vector<bool> our_used(ours.size(), false), their_used(static_cast<std::size_t>(d.nefc), false);
  for (const RowPair& pair : row_pairs(s, ours)) {
    const std::size_t i = static_cast<std::size_t>(pair.theirs);
    if (our_used[pair.ours] || their_used[i]) continue;
    our_used[pair.ours] = their_used[i] = true;
    compare_pair(s, pair, ours[pair.ours], findings);
  }
  int missing = 0, more = 0;
  for (std::size_t k = 0; k < ours.size(); ++k) more += !our_used[k] && largest_element(ours[k]) > kMovesNothing;
  for (int i = 0; i < d.nefc; ++i) {
    if (!their_used[static_cast<std::size_t>(i)]) missing += largest_element(mujoco_row(&s.m, &d, i)) > kMovesNothing;
  }
  if (missing + more == 0) return;
  findings.find({"number of rows", "", static_cast<double>(d.nefc - missing + more), static_cast<double>(d.nefc),
                 1.0 + missing + more, ""});
}

}  // namespace cohort::sim::test
