/// The kernels' view of the memory in which an engine keeps its fields.
#pragma once

#include <algorithm>
#include <limits>

#include "sim/engine.h"
#include "sim/kernels/lane/data_view.h"

namespace cohort::sim {

/// The others are int32.
constexpr bool is_float(Field field) {
  return field < Field::kStatus;
}

/// DataView::left.
inline int left_bits(const FieldSet& step_leaves) {
  const auto leaves = [&](Field field) { return step_leaves.test(static_cast<std::size_t>(field)); };
  int bits = (leaves(Field::kLinkPos) ? kLeftLinkPos : 0) | (leaves(Field::kLinkQuat) ? kLeftLinkQuat : 0);
  if (leaves(Field::kLinkCom) || leaves(Field::kLinkInertia) || leaves(Field::kLinkVelocity) ||
      leaves(Field::kLinkForce)) {
    bits |= kLeftLinks;
  }
  if (leaves(Field::kQfrcActuator) || leaves(Field::kQfrcConstraint)) bits |= kLeftForces;
  return bits;
}

/// Environments with which the last block is full. The greatest numbers end at the last block that is an int's: no
/// machine has the memory, and need_memory() or the device's plan refuses them.
constexpr int padded(int n_envs, int block) {
  return block * std::min(std::numeric_limits<int>::max() / block, (n_envs - 1) / block + 1);
}

/// Rows of the state that no field shows: the lower part of the time, then the delays' history.
inline int hidden_rows(const ModelView& m) {
  return 1 + m.nhistory;
}

/// hidden: memory of hidden_rows(). floats(Field) and ints(Field) give a field's memory; null: there is no such field. link_root is null. Parameters of the environments are null, as in a model whose
/// environments share them.
template <class Floats, class Ints>
DataView data_of_fields(int n_pad, float* hidden, const Floats& floats, const Ints& ints) {
  DataView d{};
  d.n_pad = n_pad;
  d.qpos = floats(Field::kQpos);
  d.qvel = floats(Field::kQvel);
  d.act = floats(Field::kAct);
  d.warmstart = floats(Field::kWarmstart);
  d.time = floats(Field::kTime);
  d.time_low = hidden;
  d.history = hidden + n_pad;
  d.ctrl = floats(Field::kCtrl);
  d.applied = floats(Field::kQfrcApplied);
  d.link_force = floats(Field::kXfrcApplied);
  d.mocap_pos = floats(Field::kMocapPos);
  d.mocap_quat = floats(Field::kMocapQuat);
  d.qacc = floats(Field::kQacc);
  d.link_pos = floats(Field::kLinkPos);
  d.link_quat = floats(Field::kLinkQuat);
  d.sensors = floats(Field::kSensors);
  d.link_com = floats(Field::kLinkCom);
  d.link_inertia = floats(Field::kLinkInertia);
  d.link_velocity = floats(Field::kLinkVelocity);
  d.link_external = floats(Field::kLinkForce);
  d.qfrc_actuator = floats(Field::kQfrcActuator);
  d.qfrc_constraint = floats(Field::kQfrcConstraint);
  d.status = ints(Field::kStatus);
  d.contact_count = ints(Field::kContactCount);
  d.iterations = ints(Field::kSolverIterations);
  return d;
}

}  // namespace cohort::sim
