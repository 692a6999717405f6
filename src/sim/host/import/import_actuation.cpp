// Tendons and actuators.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/host/import/handle.h"
#include "sim/host/import/importer.h"
#include "sim/host/import/unsupported.h"

namespace cohort::sim::mj {

std::pair<int, int> Importer::tendon_wraps(int t, double factor) {
  const int first = static_cast<int>(out_.wrap.size());
  if (m_.wrap_type[m_.tendon_adr[t]] != mjWRAP_JOINT) {
    for (int k = 0; k < m_.ten_J_rownnz[t]; ++k) out_.wrap.push_back({-1, m_.ten_J_colind[m_.ten_J_rowadr[t] + k], 1});
    return {first, m_.ten_J_rownnz[t]};
  }
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

TendonRecord Importer::tendon(int t) {
  TendonRecord r{};
  std::tie(r.first_wrap, r.wrap_count) = tendon_wraps(t, 1);
  if (!off(mjDSBL_SPRING)) r.stiffness = f32(m_.tendon_stiffness[t]);
  if (!off(mjDSBL_DAMPER)) r.damping = f32(m_.tendon_damping[t]);
  r.spring_lower = f32(m_.tendon_lengthspring[2 * t]);
  r.spring_upper = f32(m_.tendon_lengthspring[2 * t + 1]);
  r.armature = f32(m_.tendon_armature[t]);
  r.force_limited = m_.tendon_actfrclimited[t];
  r.force_lower = f32(m_.tendon_actfrcrange[2 * t]);
  r.force_upper = f32(m_.tendon_actfrcrange[2 * t + 1]);
  if (m_.wrap_type[m_.tendon_adr[t]] != mjWRAP_JOINT) path(r, t);
  return r;
}

bool Importer::moves(int dof, int link) const {
  const std::vector<int> chain = chain_of(link);
  return std::find(chain.begin(), chain.end(), dof) != chain.end();
}

void Importer::path(TendonRecord& r, int t) {
  r.spatial = 1;
  r.first_segment = static_cast<int>(out_.segment.size());
  const int first = m_.tendon_adr[t], count = m_.tendon_num[t];
  const auto type = [&](int k) { return m_.wrap_type[first + k]; };
  double divisor = 1;
  for (int k = 0; k + 1 < count;) {
    if (type(k) == mjWRAP_PULLEY) divisor = m_.wrap_prm[first + k];
    if (type(k) == mjWRAP_PULLEY || type(k + 1) == mjWRAP_PULLEY) {
      ++k;
      continue;
    }
    const bool wraps = type(k + 1) != mjWRAP_SITE;
    const int site1 = m_.wrap_objid[first + k], site2 = m_.wrap_objid[first + k + (wraps ? 2 : 1)];
    SegmentRecord s{};
    s.site1 = add_site(site1);
    s.site2 = add_site(site2);
    s.link1 = m_.site_bodyid[site1];
    s.link2 = m_.site_bodyid[site2];
    s.geom = s.geom_link = s.side = -1;
    s.scale = f32(1 / divisor);
    int geom = -1;
    if (wraps) {
      geom = m_.wrap_objid[first + k + 1];
      s.shape = type(k + 1) == mjWRAP_SPHERE ? kAroundSphere : kAroundCylinder;
      s.geom = add_frame(m_.geom_bodyid[geom], m_.geom_pos + 3 * geom, m_.geom_quat + 4 * geom);
      s.geom_link = m_.geom_bodyid[geom];
      s.radius = f32(m_.geom_size[3 * geom]);
      const int side = static_cast<int>(std::lround(m_.wrap_prm[first + k + 1]));
      if (side >= 0) {
        s.side = add_site(side);
        const FrameRecord &centre = out_.frame[at(s.geom)], &point = out_.frame[at(s.side)];
        s.side_kind = kSideMoves;
        if (centre.body == point.body) {
          double squared = 0;
          for (int i = 0; i < 3; ++i) {
            const double d = static_cast<double>(point.pos[i]) - static_cast<double>(centre.pos[i]);
            squared += d * d;
          }
          s.side_kind = std::sqrt(squared) < m_.geom_size[3 * geom] ? kSideInside : kSideOutside;
        }
      }
    }
    s.first_move = static_cast<int>(out_.segment_move.size());
    for (int i = r.first_wrap; i < r.first_wrap + r.wrap_count; ++i) {
      const int dof = out_.wrap[at(i)].dof;
      int bits = moves(dof, m_.site_bodyid[site1]) ? kMovesSite1 : 0;
      if (moves(dof, m_.site_bodyid[site2])) bits |= kMovesSite2;
      if (geom >= 0 && moves(dof, m_.geom_bodyid[geom])) bits |= kMovesGeom;
      out_.segment_move.push_back(bits);
    }
    out_.segment.push_back(s);
    k += wraps ? 2 : 1;
  }
  r.segment_count = static_cast<int>(out_.segment.size()) - r.first_segment;
}

void Importer::tendons_and_actuators() {
  for (int t = 0; t < m_.ntendon; ++t) out_.tendon.push_back(tendon(t));
  for (int i = 0; i < m_.nactuator; ++i) {
    out_.actuator.push_back(actuator(i));
    if (is_delayed(m_, i)) add_delays(0, m_.actuator_ctrladr[i], m_.actuator_delay[i], m_.actuator_history + 2 * i);
  }
}

/// MuJoCo keeps `nsample` values, the newest of the step before; older ones are the oldest, newer ones the newest. Its
/// splines are flat at both ends.
DelayRecord Importer::delay(int sensor, int channel, double seconds, const int* history, int halves) const {
  const int samples = history[0], interpolation = history[1];
  const double steps = in_steps(seconds) - halves / 2.0;
  const auto at_lag = [&](double lag) { return std::clamp(static_cast<int>(lag), 1, samples); };
  const int newer = at_lag(std::floor(steps)), older = at_lag(std::ceil(steps));
  std::map<int, double> weight;
  if (interpolation == 0 || newer == older) {
    weight[older] = 1;
  } else {
    const double x = std::ceil(steps) - steps;  // 0 at the older one
    if (interpolation == 1) {
      weight[older] = 1 - x, weight[newer] = x;
    } else {
      weight[older] = (2 * x - 3) * x * x + 1, weight[newer] = (3 - 2 * x) * x * x;
      const double leaves = ((x - 2) * x + 1) * x / 2, arrives = (x - 1) * x * x / 2;
      if (older < samples) weight[newer] += leaves, weight[older + 1] -= leaves;
      if (newer > 1) weight[newer - 1] += arrives, weight[older] -= arrives;
    }
  }
  DelayRecord r{};
  r.sensor = sensor;
  r.channel = channel;
  r.halves = halves;
  r.first_row = out_.sizes.nhistory;
  r.count = weight.rbegin()->first;
  for (const auto& [lag, w] : weight) {
    r.lag[r.taps] = lag;
    r.weight[r.taps++] = f32(w);
  }
  return r;
}

/// One for every time within a step at which an integrator looks at a control; all share the rows of the one that looks
/// back farthest, which with splines need not be the first.
void Importer::add_delays(int sensor, int channel, double seconds, const int* history) {
  const int last = sensor == 0 && m_.opt.integrator == mjINT_RK4 ? 2 : 0;
  int count = 0;
  for (int halves = 0; halves <= last; ++halves) {
    count = std::max(count, delay(sensor, channel, seconds, history, halves).count);
  }
  for (int halves = 0; halves <= last; ++halves) {
    out_.delay.push_back(delay(sensor, channel, seconds, history, halves));
    out_.delay.back().count = count;
  }
  out_.sizes.nhistory += count;
}

double Importer::in_steps(double seconds) const {
  constexpr double kRounding = 1e-6;  // of a quotient of two times of the file
  // Halves too: 0.035 s are 3.5 steps of 0.01 s, and the quotient is above. RK4 looks at what comes half a step later.
  const double steps = seconds / m_.opt.timestep, halves = std::round(2 * steps) / 2;
  return std::abs(steps - halves) < kRounding ? halves : steps;
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
    if (out_.tendon[at(target)].spatial) r.transmission = kTransmissionTendon;
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
  } else if (kind == mjTRN_SLIDERCRANK) {
    const int slider = m_.actuator_trnid[2 * i + 1];
    r.transmission = kTransmissionSliderCrank;
    r.target = add_site(target);
    r.reference = add_site(slider);
    r.rod = f32(m_.actuator_cranklength[i]);
    std::map<int, int> ends;
    for (int d : chain_of(m_.site_bodyid[target])) ends[d] |= kMovesCrank;
    for (int d : chain_of(m_.site_bodyid[slider])) ends[d] |= kMovesSlider;
    for (const auto& [dof, moved] : ends) out_.wrap.push_back({-1, dof, static_cast<float>(moved)});
    r.wrap_count = static_cast<int>(ends.size());
  } else if (kind == mjTRN_BODY) {
    r.transmission = kTransmissionContacts;
    r.target = target;
    for (int d = 0; d < m_.nv; ++d) out_.wrap.push_back({-1, d, 1});
    r.wrap_count = static_cast<int>(m_.nv);
    out_.sizes.adhesion = 1;
    out_.sizes.keep_contacts = 1;
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

MuscleCurve Importer::muscle_curve(const mjtNum* prm, int i) const {
  const mjtNum* lengths = m_.actuator_lengthrange + 2 * m_.actuator_outadr[i];
  const double force = prm[2] < 0 ? prm[3] / std::max(mjMINVAL, m_.actuator_acc0[m_.actuator_outadr[i]]) : prm[2];
  const double optimum = std::max(mjMINVAL, (lengths[1] - lengths[0]) / std::max(mjMINVAL, prm[1] - prm[0]));
  MuscleCurve c{};
  c.shortest = f32(lengths[0]);
  c.offset = f32(prm[0]);
  c.per_length = f32(1 / optimum);
  c.per_speed = f32(1 / std::max(mjMINVAL, optimum * prm[6]));
  c.force = f32(force);
  c.lmin = f32(prm[4]);
  c.lmax = f32(prm[5]);
  c.fpmax = f32(prm[7]);
  c.fvmax = f32(prm[8]);
  return c;
}

int Importer::muscle(int i) {
  MuscleRecord r{};
  r.has_gain = m_.actuator_gaintype[i] == mjGAIN_MUSCLE;
  r.has_bias = m_.actuator_biastype[i] == mjBIAS_MUSCLE;
  const bool moves = m_.actuator_dyntype[i] == mjDYN_MUSCLE;
  if (!r.has_gain && !r.has_bias && !moves) return -1;
  if (r.has_gain) r.gain = muscle_curve(m_.actuator_gainprm + mjNGAIN * i, i);
  if (r.has_bias) r.bias = muscle_curve(m_.actuator_biasprm + mjNBIAS * i, i);
  if (moves) {
    const mjtNum* times = m_.actuator_dynprm + mjNDYN * i;
    r.activation = f32(times[0]);
    r.deactivation = f32(times[1]);
    r.smoothing = times[2] < mjMINVAL ? 0 : f32(times[2]);
  }
  out_.muscle.push_back(r);
  return static_cast<int>(out_.muscle.size()) - 1;
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
    case mjDYN_MUSCLE:
      r.dynamics = kDynamicsMuscle;
      break;
    default:
      r.dynamics = kDynamicsNone;
  }
  r.tau = f32(tau);
  r.muscle = muscle(i);
  r.act_early = m_.actuator_actearly[i];
  // A servo of fixed gain and affine bias: its set point means an angle, whatever whole turns it has. That its gain and
  // its bias fit is looked up where they are used, because environments may change them.
  if (m_.actuator_gaintype[i] == mjGAIN_FIXED && m_.actuator_biastype[i] == mjBIAS_AFFINE) {
    const bool slides = r.gear[0] != 0 || r.gear[1] != 0 || r.gear[2] != 0;
    const mjtNum* gear = m_.actuator_gear + 6 * m_.actuator_outadr[i];
    if (r.transmission == kTransmissionBall) r.period = f32(2 * mjPI * mju_norm3(gear));
    if (r.transmission == kTransmissionSite && r.reference >= 0 && !slides) {
      r.period = f32(2 * mjPI * mju_norm3(gear + 3));
    }
  }
  const mjtNum* gain = m_.actuator_gainprm + mjNGAIN * i;
  const mjtNum* bias = m_.actuator_biasprm + mjNBIAS * i;
  // A muscle's curves are none of the values that environments may change.
  r.gain_values = m_.actuator_gaintype[i] == mjGAIN_AFFINE ? 3 : m_.actuator_gaintype[i] == mjGAIN_MUSCLE ? 0 : 1;
  r.bias_values = m_.actuator_biastype[i] == mjBIAS_AFFINE ? 3 : 0;
  put(r.gain, gain, r.gain_values);
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
