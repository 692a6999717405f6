/// Lengths, rates and arms of transmissions (MuJoCo's documentation, "Transmission"): constant arms of scalar joints
/// and fixed tendons, arms of ball and free joints, of sites and spatial tendons that the present pose decides.
#pragma once
#include "sim/kernels/lane/workspace.h"
#include "sim/kernels/smooth/frames.h"

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

/// The arm of a wrap: constant, or computed into w.arm.
template <class L>
COHORT_LANE typename L::V wrap_arm(const ModelView& m, const Workspace<L>& w, int wrap) {
  using V = typename L::V;
  return m.wrap[wrap].qpos >= 0 ? V(m.wrap[wrap].coefficient) : V(w.arm[wrap]);
}

/// Arms of a wrench at a site, or of one between a site and a reference site, in the latter's axes. The dofs that move
/// both are left out.
/// Reads kinematics; writes w.arm of the actuator's wraps.
template <class L>
COHORT_KERNEL typename L::V site_arms(const ModelView& m, Workspace<L>& w, const ActuatorRecord& a) {
  using V = typename L::V;
  const FrameRecord& site = m.frame[a.target];
  V pos[3], rot[9], at_ref[3], force[3], torque[3], length(0.0f);
  frame_pose<L>(w, site, pos, rot);
  for (int i = 0; i < 3; ++i) at_ref[i] = pos[i];
  if (a.reference < 0) {
    rotate(force, rot, a.gear);
    rotate(torque, rot, a.gear + 3);
  } else {
    const FrameRecord& ref = m.frame[a.reference];
    V rot_ref[9], o1[3], o2[3], d[3];
    frame_pose<L>(w, ref, at_ref, rot_ref);
    reference_point<L>(m, w, site.body, o1);
    reference_point<L>(m, w, ref.body, o2);
    for (int i = 0; i < 3; ++i) d[i] = (pos[i] + o1[i]) - (at_ref[i] + o2[i]);
    rotate(force, rot_ref, a.gear);
    for (int i = 0; i < 3; ++i) torque[i] = V(0.0f);
    length = dot3(d, force);
    if (a.gear[3] != 0 || a.gear[4] != 0 || a.gear[5] != 0) {
      // The turn from the reference site to the site, as a rotation vector in the reference site's axes.
      V q[4], q_ref[4], turn[3], gear[3];
      frame_quat<L>(w, site, q);
      frame_quat<L>(w, ref, q_ref);
      for (int i = 1; i < 4; ++i) q_ref[i] = -q_ref[i];
      multiply_quat(q, q_ref, q);
      quat_to_rotation(turn, q);
      for (int i = 0; i < 3; ++i) gear[i] = V(a.gear[3 + i]);
      length += dot3(turn, gear);
      rotate(torque, rot_ref, gear);
    }
  }
  for (int k = a.first_wrap; k < a.first_wrap + a.wrap_count; ++k) {
    const float side = m.wrap[k].coefficient;
    V angular[3], linear[3];
    axis_at<L>(w, m.wrap[k].dof, side > 0 ? pos : at_ref, angular, linear);
    const V arm = dot3(force, linear) + dot3(torque, angular);
    w.arm[k] = side > 0 ? arm : -arm;
  }
  return length;
}

/// Arms of a rod between a crank and a slider, whose length a.rod is: the slider stands at
/// length = axis . v - sqrt((axis . v)^2 + rod^2 - v . v) on its axis, v from the slider's site to the crank's
/// (MuJoCo's documentation, "Slider-crank"). Where the rod is too short to reach, the crank's distance along the axis.
/// Reads kinematics; writes w.arm of the actuator's wraps.
template <class L>
COHORT_KERNEL typename L::V slider_crank_arms(const ModelView& m, Workspace<L>& w, const ActuatorRecord& a) {
  using V = typename L::V;
  const FrameRecord &crank = m.frame[a.target], &slider = m.frame[a.reference];
  V at_crank[3], at_slider[3], rot[9], turned[9], o1[3], o2[3], v[3], axis[3], by_v[3], by_axis[3];
  frame_pose<L>(w, crank, at_crank, rot);
  frame_pose<L>(w, slider, at_slider, turned);
  reference_point<L>(m, w, crank.body, o1);
  reference_point<L>(m, w, slider.body, o2);
  for (int i = 0; i < 3; ++i) {
    v[i] = (at_crank[i] - at_slider[i]) + (o1[i] - o2[i]);
    axis[i] = turned[3 * i + 2];
  }
  const V along = dot3(v, axis), square = fma(along, along, V(a.rod * a.rod) - dot3(v, v)), zero(0.0f), one(1.0f);
  const auto reaches = square > zero;
  const V root = sqrt(select(reaches, square, one));
  const V share = select(reaches, one - along / root, one), inverse = select(reaches, one / root, zero);
  for (int i = 0; i < 3; ++i) {
    by_v[i] = V(a.gear[0]) * fma(share, axis[i], inverse * v[i]);
    by_axis[i] = V(a.gear[0]) * (share * v[i]);
  }
  for (int k = a.first_wrap; k < a.first_wrap + a.wrap_count; ++k) {
    const int ends = static_cast<int>(m.wrap[k].coefficient);
    V angular[3], linear[3], arm = zero;
    if (ends & kMovesCrank) {
      axis_at<L>(w, m.wrap[k].dof, at_crank, angular, linear);
      arm += dot3(by_v, linear);
    }
    if (ends & kMovesSlider) {
      V turn[3] = {zero, zero, zero};
      axis_at<L>(w, m.wrap[k].dof, at_slider, angular, linear);
      add_cross(turn, angular, axis);
      arm += dot3(by_axis, turn) - dot3(by_v, linear);
    }
    w.arm[k] = arm;
  }
  return V(a.gear[0]) * (along - select(reaches, root, zero));
}

/// Length and rate of an actuator; writes w.arm where arms are computed.
template <class L>
COHORT_LANE void actuator_transmission(const ModelView& m, Workspace<L>& w, const ActuatorRecord& a,
                                       typename L::V& length, typename L::V& rate) {
  using V = typename L::V;
  if (a.transmission == kTransmissionSum) {
    transmission(m, w, a.first_wrap, a.wrap_count, length, rate);
    return;
  }
  length = V(0.0f);
  if (a.transmission == kTransmissionTendon) {
    const TendonRecord& tendon = m.tendon[a.tendon];
    length = V(a.gear[0]) * w.ten_length[a.tendon];
    for (int k = 0; k < a.wrap_count; ++k) w.arm[a.first_wrap + k] = V(a.gear[0]) * w.arm[tendon.first_wrap + k];
  } else if (a.transmission == kTransmissionSite) {
    length = site_arms<L>(m, w, a);
  } else if (a.transmission == kTransmissionSliderCrank) {
    length = slider_crank_arms<L>(m, w, a);
  } else if (a.transmission == kTransmissionContacts) {
    // Its arms are written when the contacts are known (adhesion.h); it has no length.
  } else {
    const bool ball = a.transmission == kTransmissionBall;
    V q[4], R[9], turn[3], gear[3];
    read<4>(q, w.q + a.target);
    normalize_quat(q);
    for (int i = 0; i < 3; ++i) gear[i] = V(a.gear[ball ? i : 3 + i]);
    if (a.in_parent) {
      quat_to_matrix(R, q);
      rotate_back(gear, R, gear);
    }
    int k = a.first_wrap;
    if (ball) {
      quat_to_rotation(turn, q);
      length = dot3(turn, gear);
    } else {
      for (int i = 0; i < 3; ++i) w.arm[k++] = V(a.gear[i]);
    }
    for (int i = 0; i < 3; ++i) w.arm[k++] = gear[i];
  }
  rate = V(0.0f);
  for (int k = a.first_wrap; k < a.first_wrap + a.wrap_count; ++k) rate = fma(w.arm[k], w.v[m.wrap[k].dof], rate);
}

}  // namespace cohort::sim
