/// Actuators (MuJoCo's documentation, "Actuation model").
#pragma once
#include "sim/kernels/lane/parameters.h"
#include "sim/kernels/lane/workspace.h"
#include "sim/kernels/smooth/muscle.h"
#include "sim/kernels/smooth/transmission.h"

namespace cohort::sim {

template <class L>
COHORT_LANE typename L::V next_activation(const ModelView& m, const ActuatorRecord& a, typename L::V act,
                                          typename L::V rate) {
  using V = typename L::V;
  const V next = fma(rate, V(a.dynamics == kDynamicsFilterExact ? a.exact_factor : m.option.timestep), act);
  return a.act_limited ? clip(next, V(a.act_lower), V(a.act_upper)) : next;
}

/// The set point of a servo that turns, as the one of its values, whole turns apart, that lies nearest to `near`.
template <class L>
COHORT_LANE typename L::V nearest_turn(const ModelView& m, const Workspace<L>& w, int actuator, typename L::V point,
                                       typename L::V near) {
  using V = typename L::V;
  const float period = m.actuator[actuator].period;
  if (period == 0) return point;
  const auto servo = gain_of<L>(m, w, actuator, 0) == -gain_of<L>(m, w, actuator, 4);
  return select(servo, fma(-round((point - near) * V(1.0f / period)), V(period), point), point);
}

/// Scales the forces of a limited tendon's actuators together, so that their sum stays within its range.
/// Changes w.actuator_force.
template <class L>
COHORT_KERNEL void limit_tendon_forces(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    if (!tendon.force_limited) continue;
    V sum(0.0f);
    for (int i = 0; i < m.nact; ++i) {
      if (m.actuator[i].tendon == t) sum += w.actuator_force[i];
    }
    const V lower(tendon.force_lower), upper(tendon.force_upper);
    const auto outside = (sum < lower) | (sum > upper);
    const V share = clip(sum, lower, upper) / select(outside & (sum != V(0.0f)), sum, V(1.0f));
    for (int i = 0; i < m.nact; ++i) {
      if (m.actuator[i].tendon != t) continue;
      w.actuator_force[i] = select(outside & (sum != V(0.0f)), w.actuator_force[i] * share, w.actuator_force[i]);
    }
  }
}

/// Moves the gravity compensation of the dofs that say so from w.smooth to w.qfrc_actuator; without actuators it is
/// lost.
/// Reads kinematics; changes w.smooth, w.qfrc_actuator.
template <class L>
COHORT_KERNEL void lift_by_actuators(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const bool acts = m.nact > 0 && m.option.actuation;
  for (int b = 0; b < m.nbody; ++b) {
    if (m.body[b].gravcomp_mass == 0) continue;
    const BodyMass<V> own = mass_of<L>(m, w, b);
    V R[9], x[3], at[3], lift[3];
    read<9>(R, w.rot + 9 * b);
    read<3>(x, w.pos + 3 * b);
    rotate(at, R, own.lifted_com);
    for (int i = 0; i < 3; ++i) at[i] += x[i], lift[i] = -(own.lifted * gravity_of<L>(m, w, i));
    int chain = b;
    while (chain >= 0 && m.body[chain].dof_count == 0) chain = m.body[chain].parent;
    if (chain < 0) continue;
    const int last = m.body[chain].first_dof + m.body[chain].dof_count - 1;
    for (int k = m.pattern_start[last]; k < m.pattern_start[last + 1]; ++k) {
      const int d = m.pattern[k];
      if (!m.dof[d].lifted_by_actuators) continue;
      V angular[3], linear[3];
      axis_at<L>(w, d, at, angular, linear);
      const V force = dot3(linear, lift);
      w.smooth[d] -= force;
      if (acts) w.qfrc_actuator[d] += force;
    }
  }
}

/// Sets slopes to zero where a limit holds the force: of a tendon's actuators together, or of a joint's
/// (w.qfrc_actuator is clipped already).
/// Reads w.actuator_force, w.qfrc_actuator; changes w.actuator_slope.
template <class L>
COHORT_KERNEL void limit_slopes(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    if (!tendon.force_limited) continue;
    V sum = zero;
    for (int i = 0; i < m.nact; ++i) {
      if (m.actuator[i].tendon == t) sum += w.actuator_force[i];
    }
    // Scaled forces add up to the limit within rounding.
    constexpr float kRounding = 1e-5f;
    const V lower(tendon.force_lower), upper(tendon.force_upper);
    const auto held = (sum <= fma(abs(lower), V(kRounding), lower)) | (sum >= fma(-abs(upper), V(kRounding), upper));
    for (int i = 0; i < m.nact; ++i) {
      if (m.actuator[i].tendon == t) w.actuator_slope[i] = select(held, zero, V(w.actuator_slope[i]));
    }
  }
  for (int j = 0; j < m.njnt; ++j) {
    const JointRecord& joint = m.joint[j];
    if (!joint.force_limited) continue;
    const V force = w.qfrc_actuator[joint.dof];
    const auto held = (force <= V(joint.force_lower)) | (force >= V(joint.force_upper));
    for (int i = 0; i < m.nact; ++i) {
      const ActuatorRecord& a = m.actuator[i];
      if (a.tendon >= 0 || a.transmission != kTransmissionSum || m.wrap[a.first_wrap].dof != joint.dof) continue;
      w.actuator_slope[i] = select(held, zero, V(w.actuator_slope[i]));
    }
  }
}

/// Adds the actuators' forces to w.smooth; writes w.act_dot, w.actuator_slope, w.qfrc_actuator, and lengths,
/// rates and forces for sensors.
/// Reads w.q, w.v, w.act, w.ctrl, w.arm, w.ten_length, w.ten_velocity, kinematics.
template <class L>
COHORT_KERNEL void actuation(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int i = 0; i < m.na; ++i) w.act_dot[i] = zero;
  for (int i = 0; i < m.nact; ++i) w.actuator_slope[i] = w.actuator_force[i] = zero;
  for (int d = 0; d < m.nv; ++d) w.qfrc_actuator[d] = zero;
  if (m.lifting_actuators) lift_by_actuators<L>(m, w);
  if (m.nact == 0) return;
  for (int i = 0; i < m.nact; ++i) {
    const ActuatorRecord& a = m.actuator[i];
    V length, rate;
    actuator_transmission<L>(m, w, a, length, rate);
    w.actuator_length[i] = length;
    w.actuator_velocity[i] = m.option.actuation ? rate : zero;
    if (!m.option.actuation) continue;
    V input = w.ctrl[a.ctrl];
    if (a.ctrl_limited) input = clip(input, V(a.ctrl_lower), V(a.ctrl_upper));
    if (a.act >= 0) {
      const V act = w.act[a.act];
      V act_rate = input;
      if (a.dynamics == kDynamicsFilter || a.dynamics == kDynamicsFilterExact) {
        act_rate = (nearest_turn<L>(m, w, i, input, act) - act) / V(a.tau);
      } else if (a.dynamics == kDynamicsMuscle) {
        act_rate = muscle_activation_rate(m.muscle[a.muscle], input, act);
      }
      w.act_dot[a.act] = act_rate;
      input = a.act_early ? next_activation<L>(m, a, act, act_rate) : act;
    }
    input = nearest_turn<L>(m, w, i, input, length);
    const auto value = [&](int k) { return gain_of<L>(m, w, i, k); };
    V gain = fma(value(2), rate, fma(value(1), length, value(0))), gain_slope = value(2);
    V bias = fma(value(5), rate, fma(value(4), length, value(3)));
    if (a.muscle >= 0) {
      const MuscleRecord& muscle = m.muscle[a.muscle];
      if (muscle.has_gain) muscle_gain(muscle.gain, length, rate, gain, gain_slope);
      if (muscle.has_bias) bias = muscle_bias(muscle.bias, length);
    }
    w.actuator_force[i] = fma(gain, input, bias);
    w.actuator_slope[i] = fma(gain_slope, input, value(5));
  }
  if (!m.option.actuation) return;
  if (m.tendon_limits) limit_tendon_forces<L>(m, w);
  for (int i = 0; i < m.nact; ++i) {
    const ActuatorRecord& a = m.actuator[i];
    if (a.force_limited) {
      const V lower = force_limit_of<L>(m, w, i, 0), upper = force_limit_of<L>(m, w, i, 1),
              force = clip(V(w.actuator_force[i]), lower, upper);
      w.actuator_slope[i] = select((force <= lower) | (force >= upper), zero, V(w.actuator_slope[i]));
      w.actuator_force[i] = force;
    }
    const V force = w.actuator_force[i];
    for (int k = a.first_wrap; k < a.first_wrap + a.wrap_count; ++k) {
      w.qfrc_actuator[m.wrap[k].dof] = fma(wrap_arm<L>(m, w, k), force, w.qfrc_actuator[m.wrap[k].dof]);
    }
  }
  for (int j = 0; j < m.njnt; ++j) {
    const JointRecord& joint = m.joint[j];
    if (joint.force_limited)
      w.qfrc_actuator[joint.dof] = clip(w.qfrc_actuator[joint.dof], V(joint.force_lower), V(joint.force_upper));
  }
  if (m.option.integrator == kImplicitFast) limit_slopes<L>(m, w);
  for (int d = 0; d < m.nv; ++d) w.smooth[d] += w.qfrc_actuator[d];
}

}  // namespace cohort::sim
