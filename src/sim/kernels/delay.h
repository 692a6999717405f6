/// Controls that act and sensors that tell later (MuJoCo's documentation, "Delays"): a weighted sum of what was there
/// in the steps before, whose lags and weights are the model's.
#pragma once
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// A delayed value as it arrives now.
/// Reads d.history.
template <class L>
COHORT_LANE typename L::V arriving(const DelayRecord& r, const DataView& d, BlockEnvs envs) {
  using V = typename L::V;
  V sum(0.0f);
  for (int k = 0; k < r.taps; ++k) {
    const long long row = r.first_row + r.lag[k] - 1;
    sum = fma(V(r.weight[k]), load_of<L>(d.history + row * d.n_pad, envs), sum);
  }
  return sum;
}

/// Puts what arrives now, or halves of a step later, into w.ctrl, or with `sensors` into w.sensordata.
/// Reads d.history.
template <class L>
COHORT_KERNEL void take_arriving(const ModelView& m, const DataView& d, BlockEnvs envs, Workspace<L>& w, bool sensors,
                                 int halves = 0) {
  for (int k = 0; k < m.ndelay; ++k) {
    const DelayRecord& r = m.delay[k];
    if ((r.sensor != 0) != sensors || r.halves != halves) continue;
    (sensors ? w.sensordata : w.ctrl)[r.channel] = arriving<L>(r, d, envs);
  }
}

/// Moves the histories on by one step, in the lanes that are `ok`: the newest are this step's controls and sensors.
/// Reads d.ctrl, w.sensordata; changes d.history.
template <class L>
COHORT_KERNEL void send_off(const ModelView& m, const DataView& d, BlockEnvs envs, const Workspace<L>& w,
                            typename L::M ok) {
  using V = typename L::V;
  for (int k = 0; k < m.ndelay; ++k) {
    const DelayRecord& r = m.delay[k];
    if (r.halves != 0) continue;
    V newest =
        r.sensor ? V(w.sensordata[r.channel]) : load_of<L>(d.ctrl + static_cast<long long>(r.channel) * d.n_pad, envs);
    for (int i = 0; i < r.count; ++i) {
      float* const row = d.history + static_cast<long long>(r.first_row + i) * d.n_pad;
      const V before = load_of<L>(row, envs);
      store_of<L>(row, envs, select(ok, newest, before));
      newest = before;
    }
  }
}

}  // namespace cohort::sim
