/// Parameters that may differ between environments: the model's value, or the lane's own.
#pragma once
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// Ratios of the inverse weights of constraints to the model's, in this order; the last one is of the solver's scale.
struct RatioLayout {
  int pair, limit, friction, equality, scale, size;
};
COHORT_LANE RatioLayout ratio_layout(const ModelView& m) {
  RatioLayout l{};
  l.limit = m.npair;
  l.friction = l.limit + m.nlimit;
  l.equality = l.friction + m.nfriction;
  l.scale = l.equality + 2 * m.neq;
  l.size = l.scale + 1;
  return l;
}
COHORT_LANE bool inertia_varies(const ModelView& m) {
  return (m.varies & (kVariesMass | kVariesArmature)) != 0;
}

template <class L>
COHORT_LANE typename L::V armature_of(const ModelView& m, const Workspace<L>& w, int dof) {
  return m.varies & kVariesArmature ? typename L::V(w.armature[dof]) : typename L::V(m.dof[dof].armature);
}
template <class L>
COHORT_LANE typename L::V damping_of(const ModelView& m, const Workspace<L>& w, int dof) {
  return m.varies & kVariesDamping ? typename L::V(w.damping[dof]) : typename L::V(m.dof[dof].damping);
}
/// Entry k of gain (0..2) and bias (3..5).
template <class L>
COHORT_LANE typename L::V gain_of(const ModelView& m, const Workspace<L>& w, int actuator, int k) {
  using V = typename L::V;
  if (m.varies & kVariesGain) return w.actuator_values[kActuatorValues * actuator + k];
  const ActuatorRecord& a = m.actuator[actuator];
  return V(k < 3 ? a.gain[k] : a.bias[k - 3]);
}
/// m/s^2, along the world's axis k.
template <class L>
COHORT_LANE typename L::V gravity_of(const ModelView& m, const Workspace<L>& w, int k) {
  return m.varies & kVariesGravity ? typename L::V(w.gravity[k]) : typename L::V(m.option.gravity[k]);
}
/// Where a link's centre of mass is, m, in its body's frame.
template <class L>
COHORT_LANE void centre_of(const ModelView& m, const Workspace<L>& w, int link, typename L::V* centre) {
  using V = typename L::V;
  for (int i = 0; i < 3; ++i)
    centre[i] = m.varies & kVariesCentre ? V(w.centres[3 * link + i]) : V(m.link[link].com[i]);
}
template <class L>
COHORT_LANE typename L::V stiffness_of(const ModelView& m, const Workspace<L>& w, int joint) {
  return m.varies & kVariesStiffness ? typename L::V(w.stiffness[joint]) : typename L::V(m.joint[joint].stiffness);
}
/// end 0: the lower one, 1: the upper one.
template <class L>
COHORT_LANE typename L::V limit_of(const ModelView& m, const Workspace<L>& w, int limit, int end) {
  using V = typename L::V;
  if (m.varies & kVariesLimits) return w.limits[2 * limit + end];
  return V(end == 0 ? m.limit[limit].lower : m.limit[limit].upper);
}
template <class L>
COHORT_LANE typename L::V force_limit_of(const ModelView& m, const Workspace<L>& w, int actuator, int end) {
  using V = typename L::V;
  if (m.varies & kVariesForces) return w.force_limits[2 * actuator + end];
  return V(end == 0 ? m.actuator[actuator].force_lower : m.actuator[actuator].force_upper);
}
/// An inverse weight; `at`: its place in the ratios.
template <class L>
COHORT_LANE typename L::V weight_of(const ModelView& m, const Workspace<L>& w, float weight, int at) {
  using V = typename L::V;
  return inertia_varies(m) ? V(weight) * w.weight_ratio[at] : V(weight);
}

/// Mass, centre of mass and inertia of a body.
template <class V>
struct BodyMass {
  V mass, com[3], inertia[6], lifted, lifted_com[3];
};
/// Mass, centre and inertia of a body's or piece's record, or of an environment's values.
template <class V, class Record>
COHORT_LANE void read_mass_record(BodyMass<V>& b, const Record& r) {
  b.mass = V(r.mass);
  for (int i = 0; i < 3; ++i) b.com[i] = V(r.com[i]);
  for (int i = 0; i < 6; ++i) b.inertia[i] = V(r.inertia[i]);
}
template <class V, class Values>
COHORT_LANE void read_mass_values(BodyMass<V>& b, Values from) {
  b.mass = from[0];
  for (int i = 0; i < 3; ++i) b.com[i] = from[1 + i];
  for (int i = 0; i < 6; ++i) b.inertia[i] = from[4 + i];
}
template <class L>
COHORT_LANE BodyMass<typename L::V> mass_of(const ModelView& m, const Workspace<L>& w, int body) {
  using V = typename L::V;
  BodyMass<V> b;
  const BodyRecord& r = m.body[body];
  if (m.varies & kVariesMass) {
    const auto from = w.body_values + kBodyValues * body;
    read_mass_values(b, from);
    b.lifted = from[10];
    for (int i = 0; i < 3; ++i) b.lifted_com[i] = from[11 + i];
  } else {
    read_mass_record(b, r);
    b.lifted = V(r.gravcomp_mass);
    for (int i = 0; i < 3; ++i) b.lifted_com[i] = V(r.gravcomp_com[i]);
  }
  return b;
}

/// The same of a piece of a sensor; nothing of it is lifted.
template <class L>
COHORT_LANE BodyMass<typename L::V> piece_mass_of(const ModelView& m, const Workspace<L>& w, int piece) {
  using V = typename L::V;
  BodyMass<V> b{};
  if (m.varies & kVariesMass) {
    read_mass_values(b, w.body_values + (mass_layout(m).piece + kPieceValues * piece));
  } else {
    read_mass_record(b, m.piece[piece]);
  }
  return b;
}

/// Factors of a fluid's drag on a link.
template <class V>
struct Drag {
  V angular_linear, linear_linear, angular_square[3], linear_square[3];
};
template <class L>
COHORT_LANE Drag<typename L::V> drag_of(const ModelView& m, const Workspace<L>& w, int fluid) {
  using V = typename L::V;
  Drag<V> d;
  const FluidRecord& r = m.fluid[fluid];
  if (m.varies & kVariesMass) {
    const auto from = w.body_values + (mass_layout(m).fluid + kFluidValues * fluid);
    d.angular_linear = from[0], d.linear_linear = from[1];
    for (int i = 0; i < 3; ++i) d.angular_square[i] = from[2 + i], d.linear_square[i] = from[5 + i];
  } else {
    d.angular_linear = V(r.angular_linear), d.linear_linear = V(r.linear_linear);
    for (int i = 0; i < 3; ++i)
      d.angular_square[i] = V(r.angular_square[i]), d.linear_square[i] = V(r.linear_square[i]);
  }
  return d;
}

}  // namespace cohort::sim
