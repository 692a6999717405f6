/// Poses, velocities and accelerations of frames fixed in bodies, about their tree's reference point.
#pragma once
#include "sim/kernels/lane/spatial.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// Position and axes; of a frame in the world: in the world.
template <class L>
COHORT_LANE void frame_pose(const Workspace<L>& w, const FrameRecord& f, typename L::V* pos, typename L::V* rot) {
  using V = typename L::V;
  if (f.body < 0) {
    for (int i = 0; i < 3; ++i) pos[i] = V(f.pos[i]);
    for (int i = 0; i < 9; ++i) rot[i] = V(f.rot[i]);
    return;
  }
  V R[9], x[3];
  read<9>(R, w.rot + 9 * f.body);
  read<3>(x, w.pos + 3 * f.body);
  rotate(pos, R, f.pos);
  for (int i = 0; i < 3; ++i) pos[i] += x[i];
  multiply3(rot, R, f.rot);
}

/// The reference point that the positions of a body's frames are relative to, in the world.
template <class L>
COHORT_LANE void reference_point(const ModelView& m, const Workspace<L>& w, int body, typename L::V* origin) {
  using V = typename L::V;
  for (int i = 0; i < 3; ++i) origin[i] = body < 0 ? V(0.0f) : V(w.origin[3 * m.body[body].root + i]);
}

/// Orientation of a frame as a quaternion of unit length.
template <class L>
COHORT_LANE void frame_quat(const Workspace<L>& w, const FrameRecord& f, typename L::V* quat) {
  using V = typename L::V;
  for (int i = 0; i < 4; ++i) quat[i] = V(f.quat[i]);
  if (f.body < 0) return;
  V R[9], q[4];
  read<9>(R, w.rot + 9 * f.body);
  matrix_to_quat(q, R);
  multiply_quat(quat, q, f.quat);
}

/// Angular velocity, and velocity of the point p (about the reference point), of a body.
template <class L>
COHORT_LANE void point_velocity(const Workspace<L>& w, int body, const typename L::V* p, typename L::V* angular,
                                typename L::V* linear) {
  using V = typename L::V;
  for (int i = 0; i < 3; ++i) angular[i] = linear[i] = V(0.0f);
  if (body < 0) return;
  V v[6];
  read<6>(v, w.vel + 6 * body);
  for (int i = 0; i < 3; ++i) angular[i] = v[i], linear[i] = v[3 + i];
  add_cross(linear, angular, p);
}

/// Angular acceleration, and acceleration of the point p, of a body that has the spatial acceleration `acc`.
template <class L>
COHORT_LANE void point_acceleration(const Workspace<L>& w, int body, const typename L::V* acc, const typename L::V* p,
                                    typename L::V* angular, typename L::V* linear) {
  using V = typename L::V;
  V omega[3], v[3];
  point_velocity<L>(w, body, p, omega, v);
  for (int i = 0; i < 3; ++i) angular[i] = acc[i], linear[i] = acc[3 + i];
  add_cross(linear, angular, p);
  add_cross(linear, omega, v);
}

/// Dof d's axis as it moves a body: angular part, and the linear part at p.
template <class L>
COHORT_LANE void axis_at(const Workspace<L>& w, int d, const typename L::V* p, typename L::V* angular,
                         typename L::V* linear) {
  typename L::V S[6];
  read<6>(S, w.axis + 6 * d);
  for (int i = 0; i < 3; ++i) angular[i] = S[i], linear[i] = S[3 + i];
  add_cross(linear, angular, p);
}

}  // namespace cohort::sim
