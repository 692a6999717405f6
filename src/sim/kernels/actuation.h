/// Actuators (MuJoCo's documentation, "Actuation model").
#pragma once
#include "sim/kernels/parameters.h"
#include "sim/kernels/transmission.h"
#include "sim/kernels/workspace.h"

namespace cohort::sim {

template <class L>
COHORT_LANE typename L::V next_activation(const ModelView& m, const ActuatorRecord& a, typename L::V act,
                                          typename L::V rate) {
  using V = typename L::V;
  const V next = fma(rate, V(a.dynamics == kDynamicsFilterExact ? a.exact_factor : m.option.timestep), act);
  return a.act_limited ? clip(next, V(a.act_lower), V(a.act_upper)) : next;
}

/// Adds the actuators' forces to w.smooth; writes w.act_dot, w.actuator_slope, w.qfrc_actuator, and lengths,
/// rates and forces for sensors.
template <class L>
COHORT_KERNEL void actuation(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int i = 0; i < m.na; ++i) w.act_dot[i] = zero;
  for (int i = 0; i < m.nact; ++i) w.actuator_slope[i] = w.actuator_force[i] = zero;
  for (int d = 0; d < m.nv; ++d) w.qfrc_actuator[d] = zero;
  if (m.nact == 0) return;
  for (int i = 0; i < m.nact; ++i) {
    const ActuatorRecord& a = m.actuator[i];
    V length, rate;
    actuator_transmission<L>(m, w, a, length, rate);
    w.actuator_length[i] = length;
    w.actuator_velocity[i] = rate;
    if (!m.option.actuation) continue;
    V input = w.ctrl[a.ctrl];
    if (a.ctrl_limited) input = clip(input, V(a.ctrl_lower), V(a.ctrl_upper));
    if (a.act >= 0) {
      const V act = w.act[a.act];
      V act_rate = input;
      if (a.dynamics == kDynamicsFilter || a.dynamics == kDynamicsFilterExact) act_rate = (input - act) / V(a.tau);
      w.act_dot[a.act] = act_rate;
      input = a.act_early ? next_activation<L>(m, a, act, act_rate) : act;
    }
    const auto value = [&](int k) { return gain_of<L>(m, w, i, k); };
    const V gain = fma(value(2), rate, fma(value(1), length, value(0)));
    const V bias = fma(value(5), rate, fma(value(4), length, value(3)));
    V force = fma(gain, input, bias);
    V slope = fma(value(2), input, value(5));
    if (a.force_limited) {
      force = clip(force, V(a.force_lower), V(a.force_upper));
      slope = select((force <= V(a.force_lower)) | (force >= V(a.force_upper)), zero, slope);
    }
    w.actuator_slope[i] = slope;
    w.actuator_force[i] = force;
    for (int k = a.first_wrap; k < a.first_wrap + a.wrap_count; ++k) {
      w.qfrc_actuator[m.wrap[k].dof] = fma(arm_of<L>(m, w, a, k), force, w.qfrc_actuator[m.wrap[k].dof]);
    }
  }
  for (int j = 0; j < m.njnt; ++j) {
    const JointRecord& joint = m.joint[j];
    if (joint.force_limited)
      w.qfrc_actuator[joint.dof] = clip(w.qfrc_actuator[joint.dof], V(joint.force_lower), V(joint.force_upper));
  }
  for (int d = 0; d < m.nv; ++d) w.smooth[d] += w.qfrc_actuator[d];
}

}  // namespace cohort::sim
