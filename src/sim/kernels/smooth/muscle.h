/// Muscles: force over length and velocity, and activation (MuJoCo's documentation, "Muscles": mju_muscleGain,
/// mju_muscleBias, mju_muscleDynamics).
#pragma once
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// What divides is at least this (mjMINVAL).
COHORT_LANE float at_least_minimum(float x) {
  return x > 1e-15f ? x : 1e-15f;
}

template <class V>
COHORT_LANE V muscle_length(const MuscleCurve& c, V length) {
  return fma(length - V(c.shortest), V(c.per_length), V(c.offset));
}

/// Active force over relative length: 0 at lmin and lmax, 1 at 1, four parabolas between.
template <class V>
COHORT_LANE V active_length_curve(const MuscleCurve& c, V length) {
  const float low = 0.5f * (c.lmin + 1), high = 0.5f * (1 + c.lmax);
  const V zero(0.0f), half(0.5f), one(1.0f);
  const auto rising = length <= V(low), shorter = length <= one, longer = length <= V(high);
  const V inner_width = select(shorter, V(1 / at_least_minimum(1 - low)), V(1 / at_least_minimum(high - 1)));
  const V inner = (length - one) * inner_width;
  const V outer = select(shorter, (length - V(c.lmin)) * V(1 / at_least_minimum(low - c.lmin)),
                         (V(c.lmax) - length) * V(1 / at_least_minimum(c.lmax - high)));
  const auto is_outer = rising | flip(longer);
  const V force = select(is_outer, half * outer * outer, fma(-half, inner * inner, one));
  return select((length >= V(c.lmin)) & (length <= V(c.lmax)), force, zero);
}

/// Active force of a whole activation, and its derivative by the velocity.
template <class V>
COHORT_LANE void muscle_gain(const MuscleCurve& c, V length, V velocity, V& gain, V& slope) {
  const V zero(0.0f), one(1.0f), speed = velocity * V(c.per_speed);
  const float most = c.fvmax - 1, per_most = 1 / at_least_minimum(most);
  const V rest = V(most) - speed, past = speed + one;
  V force = select(speed <= V(most), fma(-(rest * rest), V(per_most), V(c.fvmax)), V(c.fvmax));
  V change = select(speed <= V(most), V(2 * per_most) * rest, zero);
  force = select(speed <= zero, select(speed <= -one, zero, past * past), force);
  change = select(speed <= zero, select(speed <= -one, zero, V(2.0f) * past), change);
  const V scale = -(V(c.force) * active_length_curve(c, muscle_length(c, length)));
  gain = scale * force;
  slope = scale * change * V(c.per_speed);
}

/// Passive force of a muscle beyond its optimum.
template <class V>
COHORT_LANE V muscle_bias(const MuscleCurve& c, V length) {
  const float high = 0.5f * (1 + c.lmax), per_width = 1 / at_least_minimum(high - 1);
  const V zero(0.0f), one(1.0f), half(0.5f), relative = muscle_length(c, length);
  const V inner = (relative - one) * V(per_width), outer = (relative - V(high)) * V(per_width);
  const V force = select(relative <= V(high), half * inner * inner, half + outer);
  return select(relative <= one, zero, V(-(c.force * c.fpmax)) * force);
}

/// Rate of a muscle's activation.
template <class V>
COHORT_LANE V muscle_activation_rate(const MuscleRecord& r, V ctrl, V act) {
  const V zero(0.0f), one(1.0f);
  const V scale = fma(V(1.5f), clip(act, zero, one), V(0.5f));
  const V rises = V(r.activation) * scale, falls = V(r.deactivation) / scale, change = clip(ctrl, zero, one) - act;
  V time = select(change > zero, rises, falls);
  if (r.smoothing > 0) {
    // A quintic step (mju_sigmoid).
    const V x = clip(fma(change, V(1 / r.smoothing), V(0.5f)), zero, one);
    const V step = x * x * x * fma(x, fma(x, V(6.0f), V(-15.0f)), V(10.0f));
    time = fma(rises - falls, step, falls);
  }
  return change / max(time, V(1e-15f));
}

}  // namespace cohort::sim
