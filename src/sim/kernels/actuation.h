/// Passive forces of joints and tendons, and actuators (MuJoCo's documentation, "Passive forces" and "Actuation
/// model").
#pragma once
#include "sim/kernels/workspace.h"

namespace cohort::sim {

/// Length and rate of a sum of scalar joints.
template <class L>
COHORT_LANE void transmission(const ModelView& m, Workspace<L>& w, int first, int count, typename L::V& length,
                              typename L::V& rate) {
  using V = typename L::V;
  length = rate = V(0.0f);
  for (int k = first; k < first + count; ++k) {
    const V c(m.wrap[k].coefficient);
    length = fma(c, w.q[m.wrap[k].qpos], length);
    rate = fma(c, w.v[m.wrap[k].dof], rate);
  }
}

/// Adds springs, dampers and the applied forces to w.smooth; writes w.ten_length, w.ten_velocity.
template <class L>
COHORT_KERNEL void passive(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int d = 0; d < m.nv; ++d) w.smooth[d] = fma(V(-m.dof[d].damping), w.v[d], w.smooth[d] + w.applied[d]);
  for (int j = 0; j < m.njnt; ++j) {
    const JointRecord& joint = m.joint[j];
    if (joint.stiffness == 0) continue;
    w.smooth[joint.dof] = fma(V(-joint.stiffness), w.q[joint.qpos] - V(joint.spring_qpos), w.smooth[joint.dof]);
  }
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    V length, rate;
    transmission(m, w, tendon.first_wrap, tendon.wrap_count, length, rate);
    w.ten_length[t] = length;
    w.ten_velocity[t] = rate;
    if (tendon.stiffness == 0 && tendon.damping == 0) continue;
    const V above = max(length - V(tendon.spring_upper), zero), below = min(length - V(tendon.spring_lower), zero);
    const V force = -(V(tendon.stiffness) * (above + below)) - V(tendon.damping) * rate;
    for (int k = tendon.first_wrap; k < tendon.first_wrap + tendon.wrap_count; ++k) {
      w.smooth[m.wrap[k].dof] = fma(V(m.wrap[k].coefficient), force, w.smooth[m.wrap[k].dof]);
    }
  }
}

template <class L>
COHORT_LANE typename L::V next_activation(const ModelView& m, const ActuatorRecord& a, typename L::V act,
                                          typename L::V rate) {
  using V = typename L::V;
  const V next = fma(rate, V(a.dynamics == kDynamicsFilterExact ? a.exact_factor : m.option.timestep), act);
  return a.act_limited ? clip(next, V(a.act_lower), V(a.act_upper)) : next;
}

/// Adds the actuators' forces to w.smooth; writes w.act_dot and w.actuator_slope. Uses w.scratch.
template <class L>
COHORT_KERNEL void actuation(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int i = 0; i < m.na; ++i) w.act_dot[i] = zero;
  for (int i = 0; i < m.nact; ++i) w.actuator_slope[i] = zero;
  if (!m.option.actuation || m.nact == 0) return;
  for (int d = 0; d < m.nv; ++d) w.scratch[d] = zero;
  for (int i = 0; i < m.nact; ++i) {
    const ActuatorRecord& a = m.actuator[i];
    V length, rate;
    transmission(m, w, a.first_wrap, a.wrap_count, length, rate);
    V input = w.ctrl[a.ctrl];
    if (a.ctrl_limited) input = clip(input, V(a.ctrl_lower), V(a.ctrl_upper));
    V slope_input = w.ctrl[a.ctrl];  // MuJoCo's derivative takes the control as it was given
    if (a.act >= 0) {
      const V act = w.act[a.act];
      V act_rate = input;
      if (a.dynamics == kDynamicsFilter || a.dynamics == kDynamicsFilterExact) act_rate = (input - act) / V(a.tau);
      w.act_dot[a.act] = act_rate;
      input = a.act_early ? next_activation<L>(m, a, act, act_rate) : act;
      slope_input = input;
    }
    const V gain = fma(V(a.gain[2]), rate, fma(V(a.gain[1]), length, V(a.gain[0])));
    const V bias = fma(V(a.bias[2]), rate, fma(V(a.bias[1]), length, V(a.bias[0])));
    V force = fma(gain, input, bias);
    V slope = fma(V(a.gain[2]), slope_input, V(a.bias[2]));
    if (a.force_limited) {
      force = clip(force, V(a.force_lower), V(a.force_upper));
      slope = select((force <= V(a.force_lower)) | (force >= V(a.force_upper)), zero, slope);
    }
    w.actuator_slope[i] = slope;
    for (int k = a.first_wrap; k < a.first_wrap + a.wrap_count; ++k) {
      w.scratch[m.wrap[k].dof] = fma(V(m.wrap[k].coefficient), force, w.scratch[m.wrap[k].dof]);
    }
  }
  for (int j = 0; j < m.njnt; ++j) {
    const JointRecord& joint = m.joint[j];
    if (joint.force_limited)
      w.scratch[joint.dof] = clip(w.scratch[joint.dof], V(joint.force_lower), V(joint.force_upper));
  }
  for (int d = 0; d < m.nv; ++d) w.smooth[d] += w.scratch[d];
}

}  // namespace cohort::sim
