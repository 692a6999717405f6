/// Sensors that are read once in a while (MuJoCo's documentation, "Delays"): at the first step after each period, whose
/// phase the model has. In between they tell their last reading; with a delay as well, what they had read by then, or
/// between two readings.
#pragma once
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// What rounding of a sum of periods may be, steps.
inline constexpr float kOnTime = 1e-4f;

/// A sensor's rows of the history, in the lanes of a block.
template <class L>
struct Readings {
  using V = typename L::V;
  const IntervalRecord& r;
  const DataView& d;
  BlockEnvs envs;

  COHORT_LANE float* row(int k) const { return d.history + static_cast<long long>(r.first_row + k) * d.n_pad; }
  COHORT_LANE float* value_row(int k, int i) const { return row(1 + r.count + k * r.dim + i); }
  /// Age of reading k at a reset, steps.
  COHORT_LANE V age_at_reset(int k) const {
    const float steps = r.start + static_cast<float>(k) * r.period + kOnTime;
    return V(static_cast<float>(static_cast<int>(steps)));
  }
  COHORT_LANE V age(int k) const { return load_of<L>(row(1 + k), envs) + age_at_reset(k); }
  COHORT_LANE V value(int k, int i) const { return load_of<L>(value_row(k, i), envs); }
  /// Steps until it is due; at a reset a period less what has gone by.
  COHORT_LANE V wait() const { return load_of<L>(row(0), envs) + V(r.period - r.start); }
  COHORT_LANE typename L::M due() const { return wait() <= V(kOnTime); }
};

/// What a delayed reading adds between its older end, k, and its newer one; part: of the way from the one to the other.
template <class L>
COHORT_LANE typename L::V between_readings(const Readings<L>& from, int k, int i, typename L::V part) {
  using V = typename L::V;
  const V older = from.value(k, i), newer = from.value(k - 1, i), one(1.0f), two(2.0f), three(3.0f);
  if (from.r.interpolation == 0) return older;
  if (from.r.interpolation == 1) return fma(part, newer - older, older);
  // Slopes times the distance of the two; flat at both ends of what is kept.
  const V apart = from.age(k) - from.age(k - 1), least(0.5f);
  V leaves(0.0f), arrives(0.0f);
  if (k + 1 < from.r.count) {
    leaves = (newer - from.value(k + 1, i)) * apart / max(from.age(k + 1) - from.age(k - 1), least);
  }
  if (k >= 2) arrives = (from.value(k - 2, i) - older) * apart / max(from.age(k) - from.age(k - 2), least);
  const V square = part * part, to_newer = square * (three - two * part);
  return fma(to_newer, newer - older, older) + part * (part - one) * ((part - one) * leaves + part * arrives);
}

/// Puts into w.sensordata what these sensors tell now.
/// Reads d.history, w.sensordata of this step; changes w.sensordata.
template <class L>
COHORT_KERNEL void take_readings(const ModelView& m, const DataView& d, BlockEnvs envs, Workspace<L>& w) {
  using V = typename L::V;
  for (int n = 0; n < m.ninterval; ++n) {
    const IntervalRecord& r = m.interval[n];
    const Readings<L> from{r, d, envs};
    for (int i = 0; i < r.dim; ++i) {
      V told = from.value(0, i);
      if (r.lag <= 0) {
        w.sensordata[r.address + i] = select(from.due(), V(w.sensordata[r.address + i]), told);
        continue;
      }
      const V lag(r.lag);
      for (int k = 1; k < r.count; ++k) {
        const V older = from.age(k), newer = from.age(k - 1);
        const V part = (older - lag) / max(older - newer, V(0.5f));
        told = select(newer < lag, select(lag < older, between_readings<L>(from, k, i, part), from.value(k, i)), told);
      }
      w.sensordata[r.address + i] = told;
    }
  }
}

/// Moves the readings on by one step, in the lanes that are `ok`.
/// Reads w.sensordata; changes d.history.
template <class L>
COHORT_KERNEL void keep_readings(const ModelView& m, const DataView& d, BlockEnvs envs, const Workspace<L>& w,
                                 typename L::M ok) {
  using V = typename L::V;
  for (int n = 0; n < m.ninterval; ++n) {
    const IntervalRecord& r = m.interval[n];
    const Readings<L> of{r, d, envs};
    const auto due = of.due();
    const V zero(0.0f), one(1.0f), wait = load_of<L>(of.row(0), envs);
    store_of<L>(of.row(0), envs, select(ok, wait - one + select(due, V(r.period), zero), wait));
    for (int i = 0; i < r.dim; ++i) {
      V newest = w.sensordata[r.address + i];
      for (int k = 0; k < r.count; ++k) {
        const V before = of.value(k, i);
        store_of<L>(of.value_row(k, i), envs, select(ok & due, newest, before));
        newest = before;
      }
    }
    V newest = zero;
    for (int k = 0; k < r.count; ++k) {
      const V before = of.age(k), stored = load_of<L>(of.row(1 + k), envs);
      store_of<L>(of.row(1 + k), envs, select(ok, select(due, newest, before) + one - of.age_at_reset(k), stored));
      newest = before;
    }
  }
}

}  // namespace cohort::sim
