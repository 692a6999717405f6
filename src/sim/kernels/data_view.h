/// The environments' memory as the kernels see it. Every array is [value][environment], environments padded to n_pad (a
/// multiple of 16), so that it is [value][block][lane] for every lane width at once.
#pragma once

namespace cohort::sim {

struct DataView {
  int n_pad;
  // State and inputs.
  float *qpos, *qvel, *act, *warmstart, *time, *time_low, *ctrl, *applied, *link_force, *mocap_pos, *mocap_quat;
  // Derived, written by forward.
  float *qacc, *link_pos, *link_quat;
  // Diagnostics.
  int *status, *contact_count, *iterations;
};

}  // namespace cohort::sim
