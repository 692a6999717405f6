// Sensors of one state.
#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "state_comparison.h"

namespace cohort::sim::test {

namespace {

/// Sensors of positions and velocities, and of accelerations and forces.
constexpr double kMotionTolerance = 1e-4, kForceTolerance = 1e-2;
/// Of forces that cancel in a sum.
constexpr double kForceSumTolerance = 1e-3;

/// Dofs that move a point, with a lever of less than a metre each.
constexpr double kDofsOfAPoint = 3;
/// Of each contact that a contact sensor of a random model lists.
constexpr std::size_t kContactValues = 17;

bool feels_force(int type) {
  return type == mjSENS_FORCE || type == mjSENS_TORQUE;
}

/// Whether an active weld ends in a body or what hangs on it.
bool welds_within(const ComparedState& s, int body) {
  const auto within = [&](int other) {
    while (other > body) other = s.m.body_parentid[other];
    return other == body;
  };
  for (int e = 0; e < s.m.neq; ++e) {
    if (s.m.eq_type[e] != mjEQ_WELD || !s.answer.state->eq_active[e]) continue;
    if (within(equality_body(s.m, e, 0)) || within(equality_body(s.m, e, 1))) return true;
  }
  return false;
}

/// False for what is known to be another thing in MuJoCo.
bool is_comparable(const ComparedState& s, int sensor) {
  const int type = s.m.sensor_type[sensor];
  if (feels_force(type)) {
    const int body = s.m.site_bodyid[s.m.sensor_objid[sensor]];
    // Nothing holds the world: MuJoCo sums whatever acts on all bodies. And it takes a weld's row forces for its
    // torque.
    return body != 0 && !welds_within(s, body);
  }
  if (type == mjSENS_CONTACT) return s.contacts.same_lists;
  // Without actuation MuJoCo leaves the lengths' velocities as they were.
  return type != mjSENS_ACTUATORVEL || (s.m.opt.disableflags & mjDSBL_ACTUATION) == 0;
}

/// Contacts without an order are compared as sets of numbers; false where MuJoCo left some out, because which ones is
/// free then.
bool reorder_contacts(const mjModel& m, int sensor, std::vector<double>& ours, std::vector<double>& theirs) {
  constexpr int kNone = 0, kNetForce = 3;
  const int reduction = m.sensor_intprm[mjNSENS * sensor + 1];
  if (reduction == kNone) {
    if (theirs[0] * kContactValues > static_cast<double>(theirs.size())) return false;
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
  }
  if (reduction == kNetForce &&
      theirs.size() > kContactValues) {  // MuJoCo leaves the slots after the first as they were
    ours.resize(kContactValues);
    theirs.resize(kContactValues);
  }
  return true;
}

/// Whether the contacts that were chosen by distance or force differ in nothing that they are chosen by.
bool is_tie(const mjModel& m, int sensor, const std::vector<double>& ours, const std::vector<double>& theirs,
            double tolerance) {
  constexpr int kMinDist = 1, kMaxForce = 2, kForce = 1, kDist = 7;
  const int reduction = m.sensor_intprm[mjNSENS * sensor + 1];
  if (reduction != kMinDist && reduction != kMaxForce) return false;
  if (theirs.size() % kContactValues != 0) return false;
  for (std::size_t slot = 0; slot < theirs.size(); slot += kContactValues) {
    const double* a = ours.data() + slot;
    const double* b = theirs.data() + slot;
    const double key_a = reduction == kMinDist ? a[kDist] : mju_norm3(a + kForce);
    const double key_b = reduction == kMinDist ? b[kDist] : mju_norm3(b + kForce);
    if (a[0] != b[0] || std::abs(key_a - key_b) > tolerance * std::max(1.0, std::abs(key_b))) return false;
  }
  return true;
}

/// The geoms that a distance sensor names: one, or all of a body.
std::vector<int> geoms_of(const mjModel& m, int type, int id) {
  if (type == mjOBJ_GEOM) return {id};
  std::vector<int> geoms;
  for (int g = m.body_geomadr[id]; g < m.body_geomadr[id] + m.body_geomnum[id]; ++g) geoms.push_back(g);
  return geoms;
}

/// Whether the direction that we tell is as near the true one as MuJoCo's or nearer, by how far the shapes reach, whatever
/// either engine says: along none are two shapes farther apart than along the true one, in each other or not. Of bodies of
/// several geoms that are in each other, each engine may tell of others.
bool is_as_near_the_truth(const ComparedState& s, int sensor, const std::vector<double>& ours,
                          const std::vector<double>& theirs) {
  constexpr double kSame = 1e-6;  // m, MuJoCo's ccd_tolerance
  const int type = s.m.sensor_type[sensor];
  if (type != mjSENS_GEOMNORMAL && type != mjSENS_GEOMFROMTO) return false;
  const std::vector<int> first = geoms_of(s.m, s.m.sensor_objtype[sensor], s.m.sensor_objid[sensor]),
                         second = geoms_of(s.m, s.m.sensor_reftype[sensor], s.m.sensor_refid[sensor]);
  const auto apart = [&](int g1, int g2, const std::vector<double>& told) {
    double way[3] = {told[0], told[1], told[2]}, back[3];
    for (int i = 0; i < 3 && told.size() == 6; ++i) way[i] = told[static_cast<std::size_t>(i) + 3] - way[i];
    mju_scl3(back, way, -1);
    const mjData& d = *s.answer.forward;
    return std::max(separation_along(s.m, d, g1, g2, way), separation_along(s.m, d, g1, g2, back));
  };
  // Two points are as far from each other as the shapes along their direction.
  const auto agrees = [](const std::vector<double>& told, double distance) {
    if (told.size() != 6) return true;
    const double way[3] = {told[3] - told[0], told[4] - told[1], told[5] - told[2]};
    return std::abs(mju_norm3(way) - std::abs(distance)) < kMotionTolerance;
  };
  for (const int g1 : first) {
    for (const int g2 : second) {
      const double a = apart(g1, g2, ours), b = apart(g1, g2, theirs);
      if (first.size() * second.size() > 1 && a < 0 && b < 0) return true;
      if (first.size() * second.size() == 1 && a >= b - kSame && agrees(ours, a)) return true;
    }
  }
  return false;
}

/// Of the forces and torques that a force sensor adds up.
double largest_force(const mjModel& m, const mjData& d) {
  double most = 0;
  for (int i = 6; i < 6 * m.nbody; ++i) most = std::max({most, std::abs(d.cfrc_ext[i]), std::abs(d.cfrc_int[i])});
  return most;
}

/// What the difference of the accelerations makes of a sensor that depends on them.
double follows_from_acceleration(const ComparedState& s, int type) {
  const mjData& d = *s.answer.forward;
  if (feels_force(type)) return kForceSumTolerance * largest_force(s.m, d);
  double stiffest = 0;  // of the contacts' rows: force over acceleration
  for (int i = 0; i < d.nefc; ++i) {
    if (d.efc_type[i] >= mjCNSTR_CONTACT_FRICTIONLESS) stiffest = std::max(stiffest, d.efc_D[i]);
  }
  const bool contact = type == mjSENS_TOUCH || type == mjSENS_CONTACT;
  return s.acceleration_error * (contact ? stiffest : kDofsOfAPoint);
}

void compare_sensor(const ComparedState& s, const BlockSpace<ScalarLane>& b, int sensor, int stage,
                    Findings& findings) {
  const int at = s.m.sensor_adr[sensor], size = s.m.sensor_dim[sensor], type = s.m.sensor_type[sensor];
  std::vector<double> ours = take(b.w.sensordata + at, size), theirs = take(s.answer.forward->sensordata + at, size);
  if (type == mjSENS_CONTACT && !reorder_contacts(s.m, sensor, ours, theirs)) return;
  // A quaternion and its opposite are one orientation.
  if (size == 4 && mju_dot(ours.data(), theirs.data(), 4) < 0) {
    for (double& x : ours) x = -x;
  }
  double noise = 0, scale = 1;
  for (int k = at; k < at + size; ++k) noise = std::max(noise, s.answer.noise.sensor[static_cast<std::size_t>(k)]);
  for (double x : theirs) scale = std::max(scale, std::abs(x));
  const double follows = stage == mjSTAGE_ACC ? follows_from_acceleration(s, type) : 0;
  const double tolerance =
      (stage == mjSTAGE_ACC ? kForceTolerance : kMotionTolerance) + (kNoise * noise + follows) / scale;
  int worst = 0;
  const double difference = relative_difference(ours, theirs, worst);
  if (difference > tolerance && type == mjSENS_CONTACT && is_tie(s.m, sensor, ours, theirs, tolerance)) {
    return findings.excuse("sensor contact: several contacts are as deep or as strong");
  }
  if (difference > tolerance && is_as_near_the_truth(s, sensor, ours, theirs)) {
    return findings.excuse(std::string("sensor ") + mj::sensor_type(type) +
                           ": nearer the true direction than MuJoCo's");
  }
  const std::size_t w = static_cast<std::size_t>(worst);
  findings.expect(std::string("sensor ") + mj::sensor_type(type), format("sensor {}, index {}", sensor, worst), ours[w],
                  theirs[w], difference, tolerance);
}

}  // namespace

void compare_sensors(const ComparedState& s, const BlockSpace<ScalarLane>& b, int last, Findings& findings) {
  for (int i = 0; i < s.m.nsensor; ++i) {
    const int stage = s.m.sensor_type[i] == mjSENS_CONTACT ? mjSTAGE_ACC : s.m.sensor_needstage[i];
    if (stage <= last && is_comparable(s, i)) compare_sensor(s, b, i, stage, findings);
  }
}

}  // namespace cohort::sim::test
