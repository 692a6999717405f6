/// The environments' memory as the kernels see it. Every array is [value][environment], environments padded to n_pad (a
/// multiple of 16), so that it is [value][block][lane] for every lane width at once.
#pragma once
#include "sim/kernels/lane/block_envs.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

struct DataView {
  int n_pad;
  // State and inputs. Null for zeros: applied, link_force.
  float *qpos, *qvel, *act, *warmstart, *time, *time_low, *ctrl, *applied, *link_force, *mocap_pos, *mocap_quat;
  // Derived, written by forward.
  float *qacc, *link_pos, *link_quat, *sensors;
  // Parameters of the environments, null where ModelView::varies says so: see parameters.h.
  float *body_values, *pair_values, *armature, *damping, *actuator_values, *weight_ratio;
  // Separations::at of the first environment.
  float* separations;
  // Diagnostics.
  int *status, *contact_count, *iterations;
};

/// Directions along which a block's environments were found apart (separation.h); null: nothing is remembered.
struct Separations {
  float* at = nullptr;
  int n_pad = 0;
  BlockEnvs envs;
  /// Component i of direction n (PairBoundRecord::separation) of all environments, in the second geom's frame, from
  /// that geom to the first; zero: none.
  COHORT_DEVICE float* component(int n, int i) const { return at + (3LL * n + i) * n_pad; }
};

}  // namespace cohort::sim
