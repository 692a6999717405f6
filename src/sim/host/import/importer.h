/// From MuJoCo's compiled model to the batched engine's records. Everything here is computed in double and rounded
/// once.
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "sim/host/import/library.h"
#include "sim/host/model.h"

namespace cohort::sim::mj {

using Vec3 = std::array<double, 3>;
using Mat3 = std::array<double, 9>;

inline constexpr Mat3 kIdentity{1, 0, 0, 0, 1, 0, 0, 0, 1};
/// Below this a component of a unit axis, or an offset in metres, counts as zero.
inline constexpr double kTiny = 1e-9;

inline std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

inline Mat3 from_quat(const double* q) {
  Mat3 r;
  mju_quat2Mat(r.data(), q);
  return r;
}
inline Mat3 multiply(const Mat3& a, const Mat3& b) {
  Mat3 r;
  mju_mulMatMat(r.data(), a.data(), b.data(), 3, 3, 3);
  return r;
}
inline Mat3 transpose(const Mat3& a) {
  return {a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]};
}
inline Vec3 rotate(const Mat3& a, const double* v) {
  Vec3 r;
  mju_mulMatVec3(r.data(), a.data(), v);
  return r;
}
inline Vec3 rotate_back(const Mat3& a, const double* v) {
  Vec3 r;
  mju_mulMatTVec3(r.data(), a.data(), v);
  return r;
}
template <std::size_t N>
void put(float* to, const std::array<double, N>& from) {
  for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<float>(from[i]);
}
inline void put(float* to, const double* from, int n) {
  for (int i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}
inline float f32(double value) {
  return static_cast<float>(value);
}

/// Index of the coordinate axis that `axis` is, with its sign; -1 when it is none.
inline int coordinate_axis(const Vec3& axis, double& sign) {
  for (int i = 0; i < 3; ++i) {
    if (std::abs(std::abs(axis[at(i)]) - 1) < kTiny) {
      sign = axis[at(i)] > 0 ? 1 : -1;
      return i;
    }
  }
  return -1;
}

/// A rotation whose third column is `axis` and whose first lies as near to `other` as it can.
inline Mat3 frame_with_z(const Vec3& axis, const Vec3* other) {
  Vec3 z = axis, x;
  mju_normalize3(z.data());
  const double along = other ? std::abs(mju_dot3(other->data(), z.data())) : 1;
  if (other && along < 0.99) {
    x = *other;
  } else {
    x = {0, 0, 0};
    x[std::abs(z[0]) < 0.6 ? 0 : 1] = 1;
  }
  const double d = mju_dot3(x.data(), z.data());
  for (std::size_t i = 0; i < 3; ++i) x[i] -= d * z[i];
  mju_normalize3(x.data());
  Vec3 y;
  mju_cross(y.data(), z.data(), x.data());
  return {x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]};
}

/// Mass, centre and inertia about it, summed over welded links.
struct MassSum {
  double mass = 0;
  Vec3 moment{};        // sum of mass * position
  Mat3 about_origin{};  // rotational inertia about the body's origin
  double gravcomp = 0;
  Vec3 gravcomp_moment{};
};
class Importer {
 public:
  explicit Importer(const mjModel& m);
  Model run();

 private:
  bool off(int bit) const { return (disabled_ & bit) != 0; }
  bool passive_off() const { return off(mjDSBL_SPRING) && off(mjDSBL_DAMPER); }

  void options();
  void bodies();
  /// The bodies of a link with joints: one, or where a ball joint is among several joints, one after the other, of
  /// which the last has the mass.
  void add_link_bodies(int b, int parent, const Mat3& rot, const Vec3& pos);
  void add_body(int b, int parent, const Mat3& rot, const Vec3& pos, int first, int count);
  /// Leaves the frame alone when an axis is a coordinate axis already; otherwise puts the first hinge onto z.
  Mat3 frame_for_joints(int first, int count) const;
  void add_joint(int body, int j, const Mat3& turn);
  void add_mass(MassSum& sum, int b) const;
  static void finish_mass(BodyRecord& r, const MassSum& sum);
  void dofs();
  /// Reference and impedance as MuJoCo's mj_makeImpedance reads them; `friction` rows have no stiffness.
  SolverRecord solver(const mjtNum* solref, const mjtNum* solimp, bool friction = false) const;
  void limits_and_friction();
  /// Terms of a fixed tendon, times `factor`, or a wrap for every dof that moves a spatial one; returns (first, count).
  std::pair<int, int> tendon_wraps(int t, double factor);
  std::pair<int, int> joint_wrap(int j, double factor);
  TendonRecord tendon(int t);
  /// The segments of a spatial tendon's path.
  void path(TendonRecord& r, int t);
  /// True when the dof moves the link.
  bool moves(int dof, int link) const;
  void tendons_and_actuators();
  int add_geom(int g);
  GeomRecord geom(int g) const;
  int add_mesh(int mesh);
  /// The vertices with the given numbers in the file's mesh; its faces, whose corners they are.
  void add_vertices(MeshRecord& r, int mesh, const std::vector<int>& ids);
  void add_faces(MeshRecord& r, int mesh, const std::vector<int>& ids);
  void add_directions(MeshRecord& r);
  void add_sides(MeshRecord& r);
  int add_height_field(int field);
  /// The triangles that a ray sees of a geom's mesh or height field.
  int add_ray_mesh(int g);
  /// The frame of a sensor's object.
  int add_object_frame(int type, int id);
  void sensors();
  SensorRecord sensor(int i);
  /// Pieces of the links below `link`, itself included; (first, count).
  std::pair<int, int> subtree_pieces(int link);
  bool in_subtree(int link, int root) const;
  /// Appends what a sensor wants to know of every pair; returns where.
  template <class Match>
  int pair_matches(Match match);
  /// A frame at pos and rotation quat of a link; returns its index.
  int add_frame(int link, const double* pos, const double* quat);
  int add_site(int site);
  void fluid();
  ActuatorRecord actuator(int i);
  /// A control's or sensor number's delay in seconds, as it arrives `halves` of a step behind a step's start; history:
  /// number of samples, interpolation.
  DelayRecord delay(int sensor, int channel, double seconds, const int* history, int halves) const;
  void add_delays(int sensor, int channel, double seconds, const int* history);
  void add_interval(int sensor);
  double in_steps(double seconds) const;
  MuscleCurve muscle_curve(const double* prm, int i) const;
  /// The curves and times of an actuator that is, or acts like, a muscle; -1: it does not.
  int muscle(int i);
  /// Fills in transmission, wraps and gear.
  void transmission(ActuatorRecord& r, int i);
  EqualityRecord frame_equality(int i);
  /// Dofs that move a link, root first.
  std::vector<int> chain_of(int link) const;
  /// Dofs that move link2 against link1: the two chains without what they share.
  std::pair<int, int> relative_dofs(const std::vector<int>& chain1, const std::vector<int>& chain2);
  void reserve_pairs(const std::vector<std::vector<int>>& chains);
  /// Dofs of a row that is not a contact's.
  std::pair<int, int> row_dofs(const std::vector<int>& dofs);
  std::vector<int> wrap_dofs(int first, int count) const;
  /// True when any two of the dofs are ancestor and descendant.
  bool on_one_chain(int first, int count) const;
  void contacts();
  /// Without a separation.
  Vec3 vertex_of(const MeshRecord& r, int v) const;
  void bound_turn(const MeshRecord& r, SideRecord& side) const;
  bool by_axes(const PairRecord& r) const;
  PairBoundRecord bound_of(const PairRecord& r) const;
  void runs_of_pairs();
  bool alike(const PairRecord& a, const PairRecord& b) const;
  void explicit_parameters(PairRecord& r, int p) const;
  /// Contact parameters of two geoms: priority, then solmix, as MuJoCo's documentation of contact parameters says.
  void mixed_parameters(PairRecord& r, int g1, int g2) const;
  void equalities();
  void sizes();

  const mjModel& m_;
  Model out_;
  int disabled_ = 0;
  std::vector<int> body_of_;  // per link
  std::vector<Mat3> link_rot_;
  std::vector<Vec3> link_pos_;
  std::map<int, int> geom_index_, site_index_, mesh_index_, field_index_;
};

}  // namespace cohort::sim::mj
