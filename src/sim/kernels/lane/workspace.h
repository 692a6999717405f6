/// Where a block of environments is computed: the present state, and everything a step derives from it. One per CPU
/// thread; on a GPU one per thread, strided. Laid out for a model by lay_out(), which also counts: the size is known
/// before allocation.
#pragma once
#include "sim/kernels/lane/lane.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

template <int N, class V, class P>
COHORT_LANE void read(V* out, P from) {
  for (int i = 0; i < N; ++i) out[i] = from[i];
}
template <int N, class V, class P>
COHORT_LANE void write(P to, const V* from) {
  for (int i = 0; i < N; ++i) to[i] = from[i];
}

/// Sizes in values per lane.
template <class L>
struct Workspace {
  using Ptr = typename L::Ptr;
  // State and inputs (kinematics normalizes a copy of the quaternions, never q).
  Ptr q, v, act, ctrl, applied, mocap_pos, mocap_quat, link_force;
  bool links_pushed = true;  // false: link_force is zero
  // Kinematics: orientation R_WB (nbody, 9), position relative to the tree's reference point (nbody, 3), reference
  // point in the world (nbody, 3; at the tree's root body), joint axes as spatial vectors about the reference point
  // (nv, 6). Comments of kernels call these four the kinematics.
  Ptr rot, pos, origin, axis;
  // Dynamics: spatial velocity, acceleration, force (nbody, 6), composite inertia (nbody, 10); inertia matrix and its
  // factor (lower triangle); forces without constraints, and the accelerations they make; accelerations with
  // constraints (nv).
  Ptr vel, acc, force, inertia, mass, factor, smooth, acc_smooth, qacc;
  Ptr warm;  // (nv) acceleration that the solver may start from
  // Tendons (ntendon), actuators: activation rates (na), and -d force / d velocity for implicitfast (nact).
  Ptr ten_length, ten_velocity, act_dot, actuator_slope, actuator_length, actuator_velocity, actuator_force;
  Ptr arm;                     // (nwrap) of the transmissions whose arms are computed
  Ptr qfrc_actuator, scratch;  // (nv)
  // Parameters of the lanes, where ModelView::varies says so; see parameters.h.
  Ptr body_values, pair_values, armature, damping, actuator_values, weight_ratio;
  Ptr centres, gravity, losses, stiffness, limits, force_limits, geom_values;
  // Sensors: accelerations of the bodies with the constraints' part (nbody, 6), forces along the tendons (ntendon),
  // sensor data (nsensordata).
  Ptr full_acc, ten_force, sensordata;
  Ptr constraint;  // (nv) generalized constraint forces
  // Fourth-order Runge-Kutta: start (nq + nv + na), accumulated rates (2 nv + na).
  Ptr rk_start, rk_sum;
};

/// Hands out consecutive pieces; with a null base it only counts. take_hot: what a solver's iterations write again and
/// again, for which a GPU has memory of its own (cuda/block.h).
template <class L>
struct Arena {
  typename L::Ptr base;
  int used = 0;
  COHORT_LANE typename L::Ptr take(int n) {
    typename L::Ptr piece = base + used;
    used += n;
    return piece;
  }
  COHORT_LANE typename L::Ptr take_hot(int n) { return take(n); }
};

template <class L>
COHORT_LANE void lay_out(const ModelView& m, Arena<L>& c, Workspace<L>& w) {
  const int nv = m.nv, nb = m.nbody, triangle_size = nv * (nv + 1) / 2;
  w.q = c.take(m.nq), w.v = c.take(nv), w.act = c.take(m.na), w.ctrl = c.take(m.nu), w.applied = c.take(nv);
  w.mocap_pos = c.take(3 * m.nmocap), w.mocap_quat = c.take(4 * m.nmocap), w.link_force = c.take(6 * m.nlink);
  w.rot = c.take(9 * nb), w.pos = c.take(3 * nb), w.origin = c.take(3 * nb), w.axis = c.take(6 * nv);
  w.vel = c.take(6 * nb);
  w.acc = c.take(6 * nb), w.force = c.take(6 * nb), w.inertia = c.take(10 * nb);
  w.mass = c.take(triangle_size), w.factor = c.take(triangle_size);
  w.smooth = c.take(nv), w.acc_smooth = c.take(nv), w.qacc = c.take_hot(nv), w.warm = c.take(nv);
  w.ten_length = c.take(m.ntendon), w.ten_velocity = c.take(m.ntendon), w.act_dot = c.take(m.na);
  w.actuator_slope = c.take(m.nact), w.actuator_length = c.take(m.nact), w.actuator_velocity = c.take(m.nact);
  w.actuator_force = c.take(m.nact), w.arm = c.take(m.nwrap), w.qfrc_actuator = c.take(nv), w.scratch = c.take_hot(nv),
  w.constraint = c.take_hot(nv);
  w.full_acc = c.take(m.accelerations ? 6 * nb : 0), w.ten_force = c.take(m.nsegment > 0 ? m.ntendon : 0);
  w.sensordata = c.take(m.nsensordata);
  const auto own = [&](int bit, int n) { return c.take((m.varies & bit) != 0 ? n : 0); };
  w.body_values = own(kVariesMass, mass_layout(m).size), w.pair_values = own(kVariesFriction, kPairValues * m.npair);
  w.armature = own(kVariesArmature, nv), w.damping = own(kVariesDamping, nv);
  w.actuator_values = own(kVariesGain, kActuatorValues * m.nact);
  w.weight_ratio = own(kVariesMass | kVariesArmature, m.npair + m.nlimit + m.nfriction + 2 * m.neq + 1);
  w.centres = own(kVariesCentre, 3 * m.nlink), w.gravity = own(kVariesGravity, 3);
  w.losses = own(kVariesLoss, m.nfriction), w.stiffness = own(kVariesStiffness, m.njnt);
  w.limits = own(kVariesLimits, 2 * m.nlimit), w.force_limits = own(kVariesForces, 2 * m.nact);
  w.geom_values = own(kVariesGeoms, kGeomValues * (m.ngeom + m.nray));
  const bool rk = m.option.integrator == kRk4;
  w.rk_start = c.take(rk ? m.nq + nv + m.na : 0), w.rk_sum = c.take(rk ? 2 * nv + m.na : 0);
}

}  // namespace cohort::sim
