/// The environments' memory as the kernels see it. Every array is [value][environment], environments padded to n_pad (a
/// multiple of 16), so that it is [value][block][lane] for every lane width at once.
#pragma once

namespace cohort::sim {

struct DataView {
  int n_pad;
  // State and inputs.
  float *qpos, *qvel, *act, *warmstart, *time, *time_low, *ctrl, *applied, *link_force, *mocap_pos, *mocap_quat;
  // Derived, written by forward.
  float *qacc, *link_pos, *link_quat, *sensors;
  // Parameters of the environments, null where ModelView::varies says so: see parameters.h.
  float *body_values, *pair_values, *armature, *damping, *actuator_values, *weight_ratio;
  // Diagnostics.
  int *status, *contact_count, *iterations;
};

}  // namespace cohort::sim
