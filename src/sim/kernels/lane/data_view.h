/// The environments' memory as the kernels see it. Every array is [value][environment], environments padded to n_pad (a
/// multiple of 16), so that it is [value][block][lane] for every lane width at once.
#pragma once
#include "sim/kernels/lane/block_envs.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

struct DataView {
  int n_pad;
  // State and inputs. Null for zeros: applied, link_force.
  float *qpos, *qvel, *act, *warmstart, *time, *time_low, *history, *ctrl, *applied, *link_force, *mocap_pos,
      *mocap_quat;
  // Derived, written by forward, and by the last step where `left` says so.
  float *qacc, *link_pos, *link_quat, *sensors;
  // The same; null for those that nobody asked for.
  float *link_com, *link_inertia, *link_velocity, *link_external, *qfrc_actuator, *qfrc_constraint, *link_twist,
      *geom_force;
  int left;              ///< bits of Left
  const int* link_root;  ///< (nlink) the world's child that each link hangs on; null where no link_com... is asked for
  // Parameters of the environments, null where ModelView::varies says so: see parameters.h.
  float *body_values, *pair_values, *armature, *damping, *actuator_values, *weight_ratio;
  // Likewise: (nlink, 3), (3), (nfriction), (njnt), (nlimit, 2), (nact, 2), (ngeom + nray, kGeomValues).
  float *centres, *gravity, *losses, *stiffness, *limits, *force_limits, *geom_values;
  // Separations::at of the first environment.
  float* separations;
  // Diagnostics.
  int *status, *contact_count, *iterations;
};

/// What the last step of several leaves behind.
enum Left : int {
  kLeftLinkPos = 1,
  kLeftLinkQuat = 2,
  kLeftLinks = 4,   ///< link_com, link_inertia, link_velocity, link_external, as far as there are such
  kLeftForces = 8,  ///< qfrc_actuator, qfrc_constraint likewise
  kLeftTwists = 16,
  kLeftGeomForces = 32,
  kLeftPresent = 64,  ///< poses, inertias and velocities are those of the state that the step ends in
};
/// What is left of the solver's rows and contacts.
inline constexpr int kLeftOfRows = kLeftLinks | kLeftForces | kLeftGeomForces;

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
