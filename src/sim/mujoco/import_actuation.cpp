// Tendons and actuators.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/mujoco/handle.h"
#include "sim/mujoco/importer.h"
#include "sim/mujoco/unsupported.h"

namespace cohort::sim::mj {

/// Terms of a fixed tendon, times `factor`; returns (first, count).
std::pair<int, int> Importer::tendon_wraps(int t, double factor) {
  const int first = static_cast<int>(out_.wrap.size());
  for (int k = m_.tendon_adr[t]; k < m_.tendon_adr[t] + m_.tendon_num[t]; ++k) {
    const int j = m_.wrap_objid[k];
    out_.wrap.push_back({m_.jnt_qposadr[j], m_.jnt_dofadr[j], f32(m_.wrap_prm[k] * factor)});
  }
  return {first, m_.tendon_num[t]};
}

std::pair<int, int> Importer::joint_wrap(int j, double factor) {
  out_.wrap.push_back({m_.jnt_qposadr[j], m_.jnt_dofadr[j], f32(factor)});
  return {static_cast<int>(out_.wrap.size()) - 1, 1};
}

void Importer::tendons_and_actuators() {
  for (int t = 0; t < m_.ntendon; ++t) {
    TendonRecord r{};
    std::tie(r.first_wrap, r.wrap_count) = tendon_wraps(t, 1);
    if (!off(mjDSBL_SPRING)) r.stiffness = f32(m_.tendon_stiffness[t]);
    if (!off(mjDSBL_DAMPER)) r.damping = f32(m_.tendon_damping[t]);
    r.spring_lower = f32(m_.tendon_lengthspring[2 * t]);
    r.spring_upper = f32(m_.tendon_lengthspring[2 * t + 1]);
    out_.tendon.push_back(r);
  }
  for (int i = 0; i < m_.nactuator; ++i) out_.actuator.push_back(actuator(i));
}

/// Transmissions whose arms the pose decides get a wrap for every dof they can move.
void Importer::transmission(ActuatorRecord& r, int i) {
  const mjtNum* gear = m_.actuator_gear + 6 * m_.actuator_outadr[i];
  const int target = m_.actuator_trnid[2 * i], kind = m_.actuator_trntype[i];
  put(r.gear, gear, 6);
  r.reference = r.tendon = -1;
  r.first_wrap = static_cast<int>(out_.wrap.size());
  if (kind == mjTRN_TENDON) {
    r.tendon = target;
    std::tie(r.first_wrap, r.wrap_count) = tendon_wraps(target, gear[0]);
  } else if (kind == mjTRN_SITE) {
    const int reference = m_.actuator_trnid[2 * i + 1];
    r.transmission = kTransmissionSite;
    r.target = add_site(target);
    std::map<int, float> side;
    for (int d : chain_of(m_.site_bodyid[target])) side[d] = 1;
    if (reference >= 0) {
      r.reference = add_site(reference);
      for (int d : chain_of(m_.site_bodyid[reference])) {
        if (side.erase(d) == 0) side[d] = -1;
      }
    }
    for (const auto& [dof, sign] : side) out_.wrap.push_back({-1, dof, sign});
    r.wrap_count = static_cast<int>(side.size());
  } else if (m_.jnt_type[target] == mjJNT_FREE || m_.jnt_type[target] == mjJNT_BALL) {
    const bool ball = m_.jnt_type[target] == mjJNT_BALL;
    r.transmission = ball ? kTransmissionBall : kTransmissionFree;
    r.target = m_.jnt_qposadr[target] + (ball ? 0 : 3);
    r.in_parent = kind == mjTRN_JOINTINPARENT;
    r.wrap_count = ball ? 3 : 6;
    for (int k = 0; k < r.wrap_count; ++k) out_.wrap.push_back({-1, m_.jnt_dofadr[target] + k, 1});
  } else {
    std::tie(r.first_wrap, r.wrap_count) = joint_wrap(target, gear[0]);
  }
}

ActuatorRecord Importer::actuator(int i) {
  ActuatorRecord r{};
  r.ctrl = m_.actuator_ctrladr[i];
  r.act = m_.actuator_actnum[i] > 0 ? m_.actuator_actadr[i] : -1;
  transmission(r, i);
  const double tau = std::max(mjMINVAL, m_.actuator_dynprm[mjNDYN * i]);
  switch (m_.actuator_dyntype[i]) {
    case mjDYN_INTEGRATOR:
      r.dynamics = kDynamicsIntegrator;
      break;
    case mjDYN_FILTER:
      r.dynamics = kDynamicsFilter;
      break;
    case mjDYN_FILTEREXACT:
      r.dynamics = kDynamicsFilterExact;
      r.exact_factor = f32(tau * (1 - std::exp(-m_.opt.timestep / tau)));
      break;
    default:
      r.dynamics = kDynamicsNone;
  }
  r.tau = f32(tau);
  r.act_early = m_.actuator_actearly[i];
  const mjtNum* gain = m_.actuator_gainprm + mjNGAIN * i;
  const mjtNum* bias = m_.actuator_biasprm + mjNBIAS * i;
  r.gain_values = m_.actuator_gaintype[i] == mjGAIN_AFFINE ? 3 : 1;
  r.bias_values = m_.actuator_biastype[i] == mjBIAS_AFFINE ? 3 : 0;
  put(r.gain, gain, m_.actuator_gaintype[i] == mjGAIN_AFFINE ? 3 : 1);
  if (m_.actuator_biastype[i] == mjBIAS_AFFINE) put(r.bias, bias, 3);
  r.ctrl_limited = m_.actuator_ctrllimited[r.ctrl] && !off(mjDSBL_CLAMPCTRL);
  r.ctrl_lower = f32(m_.actuator_ctrlrange[2 * r.ctrl]);
  r.ctrl_upper = f32(m_.actuator_ctrlrange[2 * r.ctrl + 1]);
  r.force_limited = m_.actuator_forcelimited[i];
  r.force_lower = f32(m_.actuator_forcerange[2 * i]);
  r.force_upper = f32(m_.actuator_forcerange[2 * i + 1]);
  r.act_limited = m_.actuator_actlimited[i];
  r.act_lower = f32(m_.actuator_actrange[2 * i]);
  r.act_upper = f32(m_.actuator_actrange[2 * i + 1]);
  return r;
}

}  // namespace cohort::sim::mj
