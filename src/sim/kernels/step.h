/// One block of environments: loads its state, computes, stores. What the CPU's threads and the GPU's threads call.
#pragma once
#include "sim/kernels/data_view.h"
#include "sim/kernels/integrate.h"
#include "sim/kernels/sensors.h"
#include "sim/kernels/smooth.h"
#include "sim/kernels/solver.h"

namespace cohort::sim {

/// Bits of Status in options.h, which kernels do not include.
inline constexpr int kContactOverflowBit = 1, kBadStateBit = 4;
/// Beyond this a coordinate, velocity or acceleration is broken (MuJoCo's mjMAXVAL).
inline constexpr float kMaxValue = 1e10f;

/// Everything a block needs, laid out in memory of values and memory of integers.
template <class L>
struct BlockSpace {
  Workspace<L> w;
  Constraints<L> c;
  SolverSpace<L> s;
  RowSpace<L> r;
};

/// Bytes of integers that lay_out wants.
struct IntegerSizes {
  int groups, cols, start, bits;
};
COHORT_LANE IntegerSizes integer_sizes(const ModelView& m, const ConstraintCapacity& most) {
  return {most.groups, m.nv * (m.nv + 1) / 2, m.nv + 1, m.nv * ((m.nv + 63) / 64)};
}
COHORT_LANE IntegerSizes integer_sizes(const ModelView& m) {
  return integer_sizes(m, constraint_capacity(m));
}

/// Lays a block's space out; returns the number of values per lane. With a null base it only counts. most: the model's
/// constraint_capacity.
template <class L>
COHORT_LANE int lay_out(const ModelView& m, const ConstraintCapacity& most, typename L::Ptr base, BlockSpace<L>& b) {
  Carver<L> values{base};
  carve<L>(m, values, b.w);
  b.c.pool = values.take(most.pool), b.c.rows = values.take(most.rows), b.c.cones = values.take(most.cones);
  b.c.geom_pos = values.take(3 * m.ngeom), b.c.geom_rot = values.take(9 * m.ngeom);
  b.c.stems = values.take(m.stem_values);
  b.c.tree_box = values.take(m.tree_boxes != 0 ? 6 * m.nbody : 0);
  SolverSpace<L>& s = b.s;
  s.Ma = values.take(m.nv), s.grad = values.take(m.nv), s.search = values.take(m.nv), s.Mv = values.take(m.nv);
  s.grad_old = values.take(m.nv), s.precond = values.take(m.nv), s.precond_old = values.take(m.nv);
  s.hessian = values.take(triangle(m.nv, 0)),
  s.sum = values.take(m.option.newton != 0 && (m.neq > 0 || !sums_anew(m)) ? triangle(m.nv, 0) : 0);
  carve<L>(m, values, b.r);
  return values.used;
}
template <class L>
COHORT_LANE int lay_out(const ModelView& m, typename L::Ptr base, BlockSpace<L>& b) {
  return lay_out<L>(m, constraint_capacity(m), base, b);
}

template <class L>
COHORT_LANE void load_rows(typename L::Ptr to, const float* from, int n, int n_pad, int env) {
  for (int i = 0; i < n; ++i)
    to[i] = load(from + static_cast<long long>(i) * n_pad + env, static_cast<typename L::V*>(nullptr));
}
/// Stores where `ok`; adding zero makes -0 into +0, the one difference that a neighbour's path could leave.
template <class L>
COHORT_LANE void store_rows(float* to, typename L::Ptr from, int n, int n_pad, int env, typename L::M ok) {
  using V = typename L::V;
  for (int i = 0; i < n; ++i) {
    float* p = to + static_cast<long long>(i) * n_pad + env;
    store(p, select(ok, from[i] + V(0.0f), load(p, static_cast<V*>(nullptr))));
  }
}

template <class L>
COHORT_KERNEL void load_parameters(const ModelView& m, const DataView& d, int env, Workspace<L>& w) {
  if (m.varies & kVariesMass) load_rows<L>(w.body_values, d.body_values, mass_layout(m).size, d.n_pad, env);
  if (m.varies & kVariesFriction) load_rows<L>(w.pair_values, d.pair_values, kPairValues * m.npair, d.n_pad, env);
  if (m.varies & kVariesArmature) load_rows<L>(w.armature, d.armature, m.nv, d.n_pad, env);
  if (m.varies & kVariesDamping) load_rows<L>(w.damping, d.damping, m.nv, d.n_pad, env);
  if (m.varies & kVariesGain) {
    load_rows<L>(w.actuator_values, d.actuator_values, kActuatorValues * m.nact, d.n_pad, env);
  }
  if (inertia_varies(m)) load_rows<L>(w.weight_ratio, d.weight_ratio, ratio_layout(m).size, d.n_pad, env);
}

template <class L>
COHORT_KERNEL void load_block(const ModelView& m, const DataView& d, int env, BlockSpace<L>& b) {
  Workspace<L>& w = b.w;
  b.c.separations = {d.separations ? d.separations + env : nullptr, d.n_pad};
  b.c.starts = {d.starts ? d.starts + static_cast<long long>(env) * m.nstart : nullptr, m.nstart};
  load_rows<L>(w.q, d.qpos, m.nq, d.n_pad, env);
  load_rows<L>(w.v, d.qvel, m.nv, d.n_pad, env);
  load_rows<L>(w.act, d.act, m.na, d.n_pad, env);
  load_rows<L>(w.warm, d.warmstart, m.nv, d.n_pad, env);
  load_rows<L>(w.ctrl, d.ctrl, m.nu, d.n_pad, env);
  load_rows<L>(w.applied, d.applied, m.nv, d.n_pad, env);
  load_rows<L>(w.link_force, d.link_force, 6 * m.nlink, d.n_pad, env);
  if (m.varies) load_parameters<L>(m, d, env, w);
  load_rows<L>(w.mocap_pos, d.mocap_pos, 3 * m.nmocap, d.n_pad, env);
  load_rows<L>(w.mocap_quat, d.mocap_quat, 4 * m.nmocap, d.n_pad, env);
}

/// From the state in b.w to b.w.qacc; returns the solver's iterations per lane.
template <class L>
COHORT_KERNEL typename L::V evaluate(const ModelView& m, BlockSpace<L>& b) {
  typename L::V iterations;
  smooth_dynamics<L>(m, b.w);
  make_rows<L>(m, b.w, b.c);
  solve_constraints<L>(m, b.w, b.c, b.s, b.r, iterations);
  return iterations;
}

/// Lanes with constraints whose solver did not end for want of iterations.
template <class L>
COHORT_LANE typename L::M solved(const ModelView& m, const Constraints<L>& c, typename L::V iterations) {
  return c.constrained & (iterations < typename L::V(static_cast<float>(m.option.iterations)));
}

template <class L>
COHORT_LANE typename L::M sound(typename L::Ptr x, int n, typename L::M ok) {
  for (int i = 0; i < n; ++i) ok = ok & (abs(x[i]) <= typename L::V(kMaxValue));
  return ok;
}

/// Advances a block by one timestep. A lane that breaks or overflows keeps its state and gets a status bit; from then
/// on it stands still, and no work is done for it.
template <class L>
COHORT_KERNEL void step_block(const ModelView& m, const DataView& d, int env, BlockSpace<L>& b) {
  using V = typename L::V;
  Workspace<L>& w = b.w;
  alignas(64) float is_live[L::kWidth];
  for (int lane = 0; lane < L::kWidth; ++lane) is_live[lane] = d.status[env + lane] == 0 ? 1.0f : 0.0f;
  b.c.live = load(is_live, static_cast<V*>(nullptr)) > V(0.0f);
  b.c.rows_are_read = false;
  if (!any(b.c.live)) return;
  load_block<L>(m, d, env, b);
  // The solver would not take a broken start, nor does the motion depend on the time: both are states all the same.
  auto good = sound<L>(w.warm, m.nv, V(0.0f) == V(0.0f));
  V contacts(0.0f);
  const V first_iterations = evaluate<L>(m, b);
  V iterations = first_iterations;
  contacts = b.c.contacts;
  V most = contacts;
  integrate<L>(m, w, solved<L>(m, b.c, first_iterations), [&] {
    iterations = iterations + evaluate<L>(m, b);
    most = max(most, b.c.contacts);
  });
  const auto fits = most <= V(static_cast<float>(m.contact_capacity));
  good = sound<L>(w.q, m.nq, good);
  good = sound<L>(w.v, m.nv, good);
  good = sound<L>(w.act, m.na, good);
  good = sound<L>(w.qacc, m.nv, good);
  // Time as a sum of two floats (Knuth's two-sum), so that it does not stop after hours.
  V* const type = nullptr;
  const V time = load(d.time + env, type), low = load(d.time_low + env, type);
  const V add = V(m.option.timestep) + low;
  const V sum = time + add;
  const V back = sum - time;
  const V rest = (time - (sum - back)) + (add - back);
  good = good & (abs(sum) <= V(kMaxValue));
  const typename L::M ok = good & fits & b.c.live;
  store_rows<L>(d.qpos, w.q, m.nq, d.n_pad, env, ok);
  store_rows<L>(d.qvel, w.v, m.nv, d.n_pad, env, ok);
  store_rows<L>(d.act, w.act, m.na, d.n_pad, env, ok);
  store_rows<L>(d.warmstart, w.qacc, m.nv, d.n_pad, env, ok);
  store(d.time + env, select(ok, sum, time));
  store(d.time_low + env, select(ok, rest, low));
  alignas(64) float count[L::kWidth], used[L::kWidth], is_good[L::kWidth], is_fit[L::kWidth];
  store(count, contacts);
  store(used, iterations);
  store(is_good, select(good, V(1.0f), V(0.0f)));
  store(is_fit, select(fits, V(1.0f), V(0.0f)));
  for (int lane = 0; lane < L::kWidth; ++lane) {
    if (is_live[lane] == 0) continue;
    d.contact_count[env + lane] = static_cast<int>(count[lane]);
    d.iterations[env + lane] = static_cast<int>(used[lane]);
    if (is_good[lane] == 0) d.status[env + lane] |= kBadStateBit;
    if (is_fit[lane] == 0) d.status[env + lane] |= kContactOverflowBit;
  }
}

/// Writes the derived fields of the present state; leaves the state alone.
template <class L>
COHORT_KERNEL void forward_block(const ModelView& m, const DataView& d, int env, BlockSpace<L>& b) {
  using V = typename L::V;
  Workspace<L>& w = b.w;
  const typename L::M all = V(0.0f) == V(0.0f);
  b.c.live = all;
  b.c.rows_are_read = true;
  load_block<L>(m, d, env, b);
  evaluate<L>(m, b);
  store_rows<L>(d.qacc, w.qacc, m.nv, d.n_pad, env, all);
  if (m.nsensor > 0) {
    sensors<L>(m, w, b.c, load(d.time + env, static_cast<V*>(nullptr)));
    store_rows<L>(d.sensors, w.sensordata, m.nsensordata, d.n_pad, env, all);
  }
  for (int k = 0; k < m.nlink; ++k) {
    const LinkRecord& link = m.link[k];
    V pos[3], quat[4];
    for (int i = 0; i < 3; ++i) pos[i] = V(link.pos[i]);
    for (int i = 0; i < 4; ++i) quat[i] = V(link.quat[i]);
    if (link.body >= 0) {
      V R[9], x[3], q[4];
      read<9>(R, w.rot + 9 * link.body);
      read<3>(x, w.pos + 3 * link.body);
      rotate(pos, R, link.pos);
      const int root = m.body[link.body].root;
      for (int i = 0; i < 3; ++i) pos[i] += x[i] + w.origin[3 * root + i];
      matrix_to_quat(q, R);
      multiply_quat(quat, q, link.quat);
    }
    for (int i = 0; i < 3; ++i) store(d.link_pos + static_cast<long long>(3 * k + i) * d.n_pad + env, pos[i]);
    for (int i = 0; i < 4; ++i) store(d.link_quat + static_cast<long long>(4 * k + i) * d.n_pad + env, quat[i]);
  }
}

}  // namespace cohort::sim
