/// What spatial tendons pull at the links they pass, for force and torque sensors.
#pragma once
#include "sim/kernels/constraint/response.h"
#include "sim/kernels/smooth/tendons.h"

namespace cohort::sim {

/// Whether the sensors need the tendons' forces.
COHORT_LANE bool pulls_links(const ModelView& m) {
  return m.accelerations && m.nsegment > 0;
}

/// w.ten_force := generalized force along each spatial tendon's length: actuators, spring, damper, its inertia's
/// resistance, limit, friction loss, equality.
/// Reads w.ten_length, w.ten_velocity, w.arm, w.qacc, w.actuator_force, the groups; writes w.ten_force.
template <class L>
COHORT_KERNEL void tendon_forces(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    const V length = w.ten_length[t], rate = w.ten_velocity[t];
    const V above = max(length - V(tendon.spring_upper), zero), below = min(length - V(tendon.spring_lower), zero);
    V force = -(V(tendon.stiffness) * (above + below)) - V(tendon.damping) * rate;
    if (tendon.spatial && tendon.armature != 0) {
      V acceleration = path_acceleration<L>(m, w, tendon);
      for (int k = tendon.first_wrap; k < tendon.first_wrap + tendon.wrap_count; ++k) {
        acceleration = fma(w.arm[k], w.qacc[m.wrap[k].dof], acceleration);
      }
      force -= V(tendon.armature) * acceleration;
    }
    w.ten_force[t] = force;
  }
  for (int i = 0; i < m.nact; ++i) {
    const ActuatorRecord& a = m.actuator[i];
    if (a.transmission == kTransmissionTendon) w.ten_force[a.tendon] += V(a.gear[0]) * w.actuator_force[i];
  }
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (g.pair != -1 || g.dofs == 0 || g.edges != 1) continue;
    V rows[kMaxDim];
    forces_of<L>(g, c.pool + g.at, rows);
    const V force = rows[0];
    // A group's list of dofs is its record's own.
    for (int i = 0; i < m.nfriction && g.kind == kGroupFriction; ++i) {
      const FrictionRecord& f = m.friction[i];
      if (f.tendon >= 0 && f.first_dof == g.first_dof) w.ten_force[f.tendon] += force;
    }
    for (int i = 0; i < m.nlimit && g.kind == kGroupInequality; ++i) {
      const LimitRecord& limit = m.limit[i];
      if (limit.kind != 2 || limit.first_dof != g.first_dof) continue;
      // At which end: both hold where the margin is wider than half of the range. A row that moves nothing pulls
      // nothing.
      V along = zero;
      for (int d = 0; d < g.dofs; ++d) {
        along = fma(c.pool[g.at + d], wrap_arm<L>(m, w, m.tendon[limit.index].first_wrap + d), along);
      }
      w.ten_force[limit.index] += select(along > zero, force, select(along < zero, -force, zero));
    }
    for (int i = 0; i < m.neq && g.kind == kGroupEquality; ++i) {
      const EqualityRecord& e = m.equality[i];
      if (e.kind != kEqualityTendon || e.first_dof != g.first_dof) continue;
      w.ten_force[e.object1] += force;
      if (e.object2 < 0) continue;
      const V x = w.ten_length[e.object2] - V(e.reference2);
      const float* p = e.polynomial;
      const V slope = fma(x, fma(x, fma(x, V(4 * p[4]), V(3 * p[3])), V(2 * p[2])), V(p[1]));
      w.ten_force[e.object2] -= slope * force;
    }
  }
}

/// Calls act(point, force) for every force of a spatial tendon on a link that `counts`.
template <class L, class Counts, class Act>
COHORT_LANE void tendon_pulls(const ModelView& m, const Workspace<L>& w, Counts counts, Act act) {
  using V = typename L::V;
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    for (int k = tendon.first_segment; k < tendon.first_segment + tendon.segment_count; ++k) {
      const SegmentRecord& s = m.segment[k];
      const bool at1 = counts(s.link1), at2 = counts(s.link2), at_geom = s.shape != kStraight && counts(s.geom_link);
      if (!at1 && !at2 && !at_geom) continue;
      const SegmentPath<L> path = segment_path<L>(m, w, s);
      const V force = V(s.scale) * w.ten_force[t];
      const V straight = select(path.wraps, V(0.0f), force), around = force - straight;
      const auto pull_at = [&](const PathPoint<V>& point, const V* direction, V strength) {
        const V f[3] = {strength * direction[0], strength * direction[1], strength * direction[2]};
        act(point, f);
      };
      if (at1) pull_at(path.p0, path.straight, -straight);
      if (at2) pull_at(path.p1, path.straight, straight);
      if (s.shape == kStraight) continue;
      if (at1) pull_at(path.p0, path.before, -around);
      if (at_geom) pull_at(path.touch0, path.before, around);
      if (at_geom) pull_at(path.touch1, path.after, -around);
      if (at2) pull_at(path.p1, path.after, around);
    }
  }
}

}  // namespace cohort::sim
