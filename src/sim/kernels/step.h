/// Blocks of environments: loads their states, computes, stores. What the CPU's threads and the GPU's threads call.
#pragma once
#include "sim/kernels/delay.h"
#include "sim/kernels/derived.h"
#include "sim/kernels/integrate.h"
#include "sim/kernels/interval.h"
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/sense/sensors.h"
#include "sim/kernels/smooth/smooth.h"
#include "sim/kernels/solve/noslip.h"
#include "sim/kernels/solve/solver.h"

namespace cohort::sim {

/// Bits of Status in options.h, which kernels do not include.
inline constexpr int kContactOverflowBit = 1, kBadStateBit = 4;
/// Beyond this a coordinate, velocity, acceleration or control is broken (MuJoCo's mjMAXVAL).
inline constexpr float kMaxValue = 1e10f;

/// Zeros where there is nothing to load.
template <class L>
COHORT_LANE void load_rows(typename L::Ptr to, const float* from, int n, int n_pad, BlockEnvs envs) {
  if (from == nullptr) {
    for (int i = 0; i < n; ++i) to[i] = typename L::V(0.0f);
    return;
  }
  for (int i = 0; i < n; ++i) to[i] = load_of<L>(from + static_cast<long long>(i) * n_pad, envs);
}
/// Stores where `ok`; adding zero makes -0 into +0, the one difference that a neighbour's path could leave.
template <class L>
COHORT_LANE void store_rows(float* to, typename L::Ptr from, int n, int n_pad, BlockEnvs envs, typename L::M ok) {
  const bool all = L::kWidth > 1 && !any(flip(ok));  // the usual case: what was there need not be read
  for (int i = 0; i < n; ++i) {
    float* const row = to + static_cast<long long>(i) * n_pad;
    const typename L::V value = from[i] + typename L::V(0.0f);
    store_of<L>(row, envs, all ? value : select(ok, value, load_of<L>(row, envs)));
  }
}

template <class L>
COHORT_LANE typename L::M sound(typename L::Ptr x, int n, typename L::M ok) {
  for (int i = 0; i < n; ++i) ok = ok & (abs(x[i]) <= typename L::V(kMaxValue));
  return ok;
}

/// Reads the parameters in d; writes those in w.
template <class L>
COHORT_KERNEL void load_parameters(const ModelView& m, const DataView& d, BlockEnvs envs, Workspace<L>& w) {
  if (m.varies & kVariesMass) load_rows<L>(w.body_values, d.body_values, mass_layout(m).size, d.n_pad, envs);
  if (m.varies & kVariesFriction) load_rows<L>(w.pair_values, d.pair_values, kPairValues * m.npair, d.n_pad, envs);
  if (m.varies & kVariesArmature) load_rows<L>(w.armature, d.armature, m.nv, d.n_pad, envs);
  if (m.varies & kVariesDamping) load_rows<L>(w.damping, d.damping, m.nv, d.n_pad, envs);
  if (m.varies & kVariesGain) {
    load_rows<L>(w.actuator_values, d.actuator_values, kActuatorValues * m.nact, d.n_pad, envs);
  }
  if (m.varies & kVariesCentre) load_rows<L>(w.centres, d.centres, 3 * m.nlink, d.n_pad, envs);
  if (m.varies & kVariesGravity) load_rows<L>(w.gravity, d.gravity, 3, d.n_pad, envs);
  if (m.varies & kVariesLoss) load_rows<L>(w.losses, d.losses, m.nfriction, d.n_pad, envs);
  if (m.varies & kVariesStiffness) load_rows<L>(w.stiffness, d.stiffness, m.njnt, d.n_pad, envs);
  if (m.varies & kVariesLimits) load_rows<L>(w.limits, d.limits, 2 * m.nlimit, d.n_pad, envs);
  if (m.varies & kVariesForces) load_rows<L>(w.force_limits, d.force_limits, 2 * m.nact, d.n_pad, envs);
  if (m.varies & kVariesGeoms)
    load_rows<L>(w.geom_values, d.geom_values, kGeomValues * (m.ngeom + m.nray), d.n_pad, envs);
  if (inertia_varies(m)) load_rows<L>(w.weight_ratio, d.weight_ratio, ratio_layout(m).size, d.n_pad, envs);
}

/// Reads state and inputs in d; writes those in w, b.sound, b.c.separations.
template <class L>
COHORT_KERNEL void load_block(const ModelView& m, const DataView& d, BlockEnvs envs, BlockSpace<L>& b) {
  Workspace<L>& w = b.w;
  b.c.separations = {d.separations, d.n_pad, envs};
  load_rows<L>(w.q, d.qpos, m.nq, d.n_pad, envs);
  load_rows<L>(w.v, d.qvel, m.nv, d.n_pad, envs);
  load_rows<L>(w.act, d.act, m.na, d.n_pad, envs);
  load_rows<L>(w.warm, d.warmstart, m.nv, d.n_pad, envs);
  load_rows<L>(w.ctrl, d.ctrl, m.nu, d.n_pad, envs);
  if (m.ndelay > 0) take_arriving<L>(m, d, envs, w, false);
  load_rows<L>(w.applied, d.applied, m.nv, d.n_pad, envs);
  load_rows<L>(w.link_force, d.link_force, 6 * m.nlink, d.n_pad, envs);
  w.links_pushed = d.link_force != nullptr;
  if (m.varies) load_parameters<L>(m, d, envs, w);
  load_rows<L>(w.mocap_pos, d.mocap_pos, 3 * m.nmocap, d.n_pad, envs);
  load_rows<L>(w.mocap_quat, d.mocap_quat, 4 * m.nmocap, d.n_pad, envs);
  // What a step would make numbers of that look right: quaternions are normalized, controls and activations clipped,
  // and what lies nowhere touches nothing.
  b.sound = sound<L>(w.q, m.nq, typename L::V(0.0f) == typename L::V(0.0f));
  b.sound = sound<L>(w.act, m.na, b.sound);
  for (int i = 0; i < m.nact && m.option.actuation; ++i) {
    // Of an infinity too the clipped value counts, as MuJoCo has it.
    const typename L::V input = w.ctrl[m.actuator[i].ctrl];
    b.sound = b.sound & (m.actuator[i].ctrl_limited ? input == input : abs(input) <= typename L::V(kMaxValue));
  }
  b.sound = sound<L>(w.mocap_pos, 3 * m.nmocap, b.sound);
  b.sound = sound<L>(w.mocap_quat, 4 * m.nmocap, b.sound);
}

/// Lanes with constraints whose solver did not end for want of iterations.
template <class L>
COHORT_LANE typename L::M solved(const ModelView& m, const Constraints<L>& c, typename L::V iterations) {
  return c.constrained & (iterations < typename L::V(static_cast<float>(m.option.iterations)));
}

/// From the states in the block's w to its w.qacc; returns the solver's iterations.
/// Reads state and inputs in w; writes all that is derived from them.
template <class L>
COHORT_KERNEL typename L::V evaluate(const ModelView& m, BlockSpace<L>& b) {
  smooth_dynamics<L>(m, b.w);
  make_rows<L>(m, b.w, b.c);
  const typename L::V iterations = solve_constraints<L>(m, b);
  if (m.option.noslip_iterations > 0 && any(b.c.constrained)) {
    remove_slip<L>(m, b.w, b.c, b.s, solved<L>(m, b.c, iterations));
  }
  return iterations;
}

/// What a block found on the way through a step.
template <class L>
struct StepCounts {
  typename L::V contacts;    ///< at its start
  typename L::V most;        ///< at any evaluation
  typename L::V iterations;  ///< of all evaluations
};

/// Steps the states in the block's w; of d the history alone is read, of controls that act later.
/// Changes w.q, w.v, w.act; writes all that is derived, and w.sensordata where a sensor is delayed. time: s, before.
template <class L>
COHORT_KERNEL StepCounts<L> step_states(const ModelView& m, const DataView& d, BlockEnvs envs, BlockSpace<L>& b,
                                        typename L::V time) {
  using V = typename L::V;
  StepCounts<L> counts;
  counts.iterations = evaluate<L>(m, b);
  counts.contacts = counts.most = b.c.contacts;
  if (m.delayed_sensors) sensors<L>(m, b.w, b.c, time);
  if (m.option.integrator != kRk4) {
    integrate<L>(m, b.w, solved<L>(m, b.c, counts.iterations));
    return counts;
  }
  begin_stages<L>(m, b.w);
  for (int stage = 0; stage < 4; ++stage) {
    add_stage<L>(m, b.w, stage);
    if (stage == 3) break;
    if (m.ndelay > 0) take_arriving<L>(m, d, envs, b.w, false, stage == 2 ? 2 : 1);
    counts.iterations = counts.iterations + evaluate<L>(m, b);
    counts.most = max(counts.most, V(b.c.contacts));
  }
  end_stages<L>(m, b.w);
  return counts;
}

/// Stores the state of the lanes whose step is good. A lane that breaks or overflows keeps its state and gets a status
/// bit; from then on it stands still, and no work is done for it. Returns the lanes whose step is good.
/// Reads w.q, w.v, w.act, w.qacc, b.sound; writes state, time and diagnostics in d.
template <class L>
COHORT_KERNEL typename L::M end_step(const ModelView& m, const DataView& d, BlockEnvs envs, BlockSpace<L>& b,
                                     const StepCounts<L>& counts) {
  using V = typename L::V;
  Workspace<L>& w = b.w;
  const auto fits = counts.most <= V(static_cast<float>(m.contact_capacity));
  // The solver would not take a broken start, nor does the motion depend on the time: both are states all the same.
  auto good = sound<L>(w.warm, m.nv, b.sound);
  good = sound<L>(w.q, m.nq, good);
  good = sound<L>(w.v, m.nv, good);
  good = sound<L>(w.act, m.na, good);
  good = sound<L>(w.qacc, m.nv, good);
  // Time as a sum of two floats (Knuth's two-sum), so that it does not stop after hours.
  const V time = load_of<L>(d.time, envs), low = load_of<L>(d.time_low, envs);
  const V add = V(m.option.timestep) + low;
  const V sum = time + add;
  const V back = sum - time;
  const V rest = (time - (sum - back)) + (add - back);
  good = good & (abs(sum) <= V(kMaxValue));
  const typename L::M ok = good & fits & b.c.live;
  store_rows<L>(d.qpos, w.q, m.nq, d.n_pad, envs, ok);
  store_rows<L>(d.qvel, w.v, m.nv, d.n_pad, envs, ok);
  store_rows<L>(d.act, w.act, m.na, d.n_pad, envs, ok);
  store_rows<L>(d.warmstart, w.qacc, m.nv, d.n_pad, envs, ok);
  if (m.ndelay > 0) send_off<L>(m, d, envs, w, ok);
  if (m.ninterval > 0) keep_readings<L>(m, d, envs, w, ok);
  store_of<L>(d.time, envs, select(ok, sum, time));
  store_of<L>(d.time_low, envs, select(ok, rest, low));
  alignas(64) float count[L::kWidth], used[L::kWidth], is_good[L::kWidth], is_fit[L::kWidth];
  store(count, counts.contacts);
  store(used, counts.iterations);
  store(is_good, select(good, V(1.0f), V(0.0f)));
  store(is_fit, select(fits, V(1.0f), V(0.0f)));
  for (unsigned left = lane_bits(b.c.live); left != 0; left &= left - 1) {
    const int lane = lowest_bit(left), env = envs[lane];
    d.contact_count[env] = static_cast<int>(count[lane]);
    d.iterations[env] = static_cast<int>(used[lane]);
    if (is_good[lane] == 0) d.status[env] |= kBadStateBit;
    if (is_fit[lane] == 0) d.status[env] |= kContactOverflowBit;
  }
  return ok;
}

/// Advances a block's environments by one timestep. last: of the steps that the caller asked for, so that what they
/// leave behind is stored.
/// Reads d; writes state, time and diagnostics in d, and what is left behind.
template <class L>
COHORT_KERNEL void step_block(const ModelView& m, const DataView& d, BlockEnvs envs, BlockSpace<L>& b, bool last) {
  using V = typename L::V;
  alignas(64) float is_live[L::kWidth];
  for (int lane = 0; lane < L::kWidth; ++lane) is_live[lane] = d.status[envs[lane]] == 0 ? 1.0f : 0.0f;
  b.c.live = load(is_live, static_cast<V*>(nullptr)) > V(0.0f);
  const bool leaves = last && d.left != 0;
  b.c.contacts_are_read = (leaves && (d.left & kLeftOfRows) != 0) || m.delayed_sensors != 0;
  b.c.rows_are_read = b.c.contacts_are_read || m.option.noslip_iterations > 0;
  if (!BlockSolver<L>::any_of_block(b.c.live)) return;
  load_block<L>(m, d, envs, b);
  const StepCounts<L> counts = step_states<L>(m, d, envs, b, load_of<L>(d.time, envs));
  const typename L::M ok = end_step<L>(m, d, envs, b, counts);
  if (leaves) store_left<L>(m, d, envs, b.w, b.c, ok);
}

/// Writes the derived fields of the present state; leaves the state alone.
/// Reads state and inputs in d; writes d.qacc, d.link_pos, d.link_quat, d.sensors, and what is asked for besides.
template <class L>
COHORT_KERNEL void forward_block(const ModelView& m, const DataView& d, int env, BlockSpace<L>& b) {
  using V = typename L::V;
  const BlockEnvs envs{env, nullptr};
  Workspace<L>& w = b.w;
  const typename L::M all = V(0.0f) == V(0.0f);
  b.c.live = all;
  b.c.rows_are_read = b.c.contacts_are_read = true;
  load_block<L>(m, d, envs, b);
  evaluate<L>(m, b);
  store_rows<L>(d.qacc, w.qacc, m.nv, d.n_pad, envs, all);
  if (m.nsensor > 0) {
    sensors<L>(m, w, b.c, load(d.time + env, static_cast<V*>(nullptr)));
    if (m.ndelay > 0) take_arriving<L>(m, d, envs, w, true);
    if (m.ninterval > 0) take_readings<L>(m, d, envs, w);
    store_rows<L>(d.sensors, w.sensordata, m.nsensordata, d.n_pad, envs, all);
  }
  store_poses<L>(m, d, envs, w, all, true, true);
  if ((d.left & kLeftLinks) != 0) store_links<L>(m, d, envs, w, b.c, all, {true, true});
  if ((d.left & kLeftForces) != 0) store_forces<L>(m, d, envs, w, all);
  if ((d.left & kLeftTwists) != 0) store_twists<L>(m, d, envs, w, all);
  if ((d.left & kLeftGeomForces) != 0) store_geom_forces<L>(m, d, envs, b.c, all);
}

}  // namespace cohort::sim
