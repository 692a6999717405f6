/// The environments' memory as the kernels see it. Every array is [value][environment], environments padded to n_pad (a
/// multiple of 16), so that it is [value][block][lane] for every lane width at once; starts alone lie environment by
/// environment.
#pragma once
#include "sim/kernels/block_envs.h"
#include "sim/kernels/model_view.h"

namespace cohort::sim {

/// Where a search over two polytopes begins (collide/polytope.h): points of their Minkowski difference around the
/// origin, by the vertices that they come from, and the triangles of their convex hull.
inline constexpr int kStartPoints = 15, kStartFaces = 2 * kStartPoints - 4;
struct SearchStart {
  unsigned point[kStartPoints];  ///< vertex of the first shape, and of the second from bit 16 on; kNoPoint ends them
  unsigned short face_count;     ///< 0: only the points are known
  unsigned short face[kStartFaces];  ///< three points, four bits each
};
/// Those that pairs share which have the same places. Who looks for his own reads the front alone.
struct SearchStartSet {
  unsigned pair[kStartWays];       ///< whose it is, counted from 1; 0: nobody's
  unsigned short age[kStartWays];  ///< how often places were asked for since this one was
  SearchStart start[kStartWays];
};
inline constexpr unsigned kNoPoint = 0xffffffffu;
inline constexpr int kNoVertex = 0xffff;

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
  // SearchStarts::at of the first environment.
  SearchStartSet* starts;
  // Diagnostics.
  int *status, *contact_count, *iterations;
};

/// Forgets what an environment's searches found.
COHORT_DEVICE inline void forget_starts(const ModelView& m, const DataView& d, int env) {
  const int sets = m.nstart / kStartWays;
  for (int i = 0; i < m.nstart; ++i) {
    d.starts[static_cast<long long>(env) * sets + i / kStartWays].pair[i % kStartWays] = 0;
  }
}

/// Directions along which a block's environments were found apart (separation.h); null: nothing is remembered.
struct Separations {
  float* at = nullptr;
  int n_pad = 0;
  BlockEnvs envs;
  /// Component i of direction n (PairBoundRecord::separation) of all environments, in the second geom's frame, from
  /// that geom to the first; zero: none.
  COHORT_DEVICE float* component(int n, int i) const { return at + (3LL * n + i) * n_pad; }
};

/// What searches found in a block's environments; null: nothing is remembered.
struct SearchStarts {
  SearchStartSet* at = nullptr;
  int sets = 0;  ///< of an environment
  BlockEnvs envs;
  /// Where the place of a pair is; n: its PairBoundRecord::separation.
  COHORT_DEVICE SearchStartSet& set(int lane, int n) const {
    return at[static_cast<long long>(envs[lane]) * sets + n % sets];
  }
  /// The place of a pair. One that is free or another's holds no start.
  COHORT_DEVICE SearchStart* place(int lane, int n, int pair) const {
    SearchStartSet& set = this->set(lane, n);
    const unsigned wanted = static_cast<unsigned>(pair) + 1;
    int chosen = 0;
    for (int k = 1; k < kStartWays; ++k) {
      if (set.age[k] > set.age[chosen]) chosen = k;
    }
    // Where all are in use, one pair has no lasting place, and not each in its turn.
    if (set.age[chosen] < 2 * kStartWays) chosen = pair / sets % kStartWays;
    for (int k = 0; k < kStartWays; ++k) {
      if (set.pair[k] == 0) chosen = k;
    }
    for (int k = 0; k < kStartWays; ++k) {
      if (set.pair[k] == wanted) chosen = k;
      set.age[k] = static_cast<unsigned short>(set.age[k] + (set.age[k] < 0xffff));
    }
    set.age[chosen] = 0;
    if (set.pair[chosen] != wanted) set.pair[chosen] = wanted, set.start[chosen].point[0] = kNoPoint;
    return &set.start[chosen];
  }
};

}  // namespace cohort::sim
