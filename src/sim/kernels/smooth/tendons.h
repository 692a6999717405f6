/// Lengths, rates and arms of tendons: sums of joints, and paths over sites and around spheres and cylinders (MuJoCo's
/// documentation, "Tendons"); their inertia.
#pragma once
#include "sim/kernels/smooth/frames.h"
#include "sim/kernels/smooth/transmission.h"
#include "sim/kernels/smooth/wrapping.h"

namespace cohort::sim {

/// A point of a path: about its tree's reference point, and that in the world.
template <class V>
struct PathPoint {
  V pos[3], origin[3];
  int root;  ///< body, or -1
};
template <class L>
COHORT_LANE PathPoint<typename L::V> path_point(const ModelView& m, const Workspace<L>& w, int frame) {
  using V = typename L::V;
  const FrameRecord& f = m.frame[frame];
  PathPoint<V> p;
  p.root = f.body < 0 ? -1 : m.body[f.body].root;
  reference_point<L>(m, w, f.body, p.origin);
  if (f.body < 0) {
    for (int i = 0; i < 3; ++i) p.pos[i] = V(f.pos[i]);
    return p;
  }
  V R[9], x[3];
  read<9>(R, w.rot + 9 * f.body);
  read<3>(x, w.pos + 3 * f.body);
  rotate(p.pos, R, f.pos);
  for (int i = 0; i < 3; ++i) p.pos[i] += x[i];
  return p;
}
/// From a to b.
template <class V>
COHORT_LANE void path_vector(V* out, const PathPoint<V>& a, const PathPoint<V>& b) {
  for (int i = 0; i < 3; ++i) out[i] = b.pos[i] - a.pos[i];
  if (a.root == b.root) return;
  for (int i = 0; i < 3; ++i) out[i] += b.origin[i] - a.origin[i];
}

/// What dof d contributes to the rate of a length whose end at `at` moves along `direction`.
template <class L>
COHORT_LANE typename L::V pull(const Workspace<L>& w, int d, const typename L::V* at, const typename L::V* direction) {
  typename L::V angular[3], linear[3];
  axis_at<L>(w, d, at, angular, linear);
  return dot3(direction, linear);
}

/// Where a segment runs: straight, or in the lanes where it wraps around its geom in two straight pieces and an arc.
template <class L>
struct SegmentPath {
  using V = typename L::V;
  PathPoint<V> p0, p1;                 ///< its sites
  V straight[3], before[3], after[3];  ///< directions, of length 1: of the whole, to the geom, from the geom
  PathPoint<V> touch0, touch1;         ///< where it begins and ceases to touch
  V length;
  typename L::M wraps;
};
/// Reads kinematics.
template <class L>
COHORT_KERNEL SegmentPath<L> segment_path(const ModelView& m, const Workspace<L>& w, const SegmentRecord& s) {
  using V = typename L::V;
  const V zero(0.0f);
  SegmentPath<L> path{};
  path.p0 = path_point<L>(m, w, s.site1), path.p1 = path_point<L>(m, w, s.site2);
  path_vector(path.straight, path.p0, path.p1);
  path.length = normalize<3>(path.straight);
  path.wraps = zero != zero;
  if (s.shape == kStraight) return path;
  V centre[3], rot[9], end0[3], end1[3], side[3], touch0[3], touch1[3], arc;
  frame_pose<L>(w, m.frame[s.geom], centre, rot);
  const PathPoint<V> geom = path_point<L>(m, w, s.geom);
  path_vector(end0, geom, path.p0);
  path_vector(end1, geom, path.p1);
  rotate_back(end0, rot, end0);
  rotate_back(end1, rot, end1);
  if (s.side >= 0) {
    path_vector(side, geom, path_point<L>(m, w, s.side));
    rotate_back(side, rot, side);
  }
  touch0[2] = touch1[2] = zero;
  path.wraps = wrap_around(s.shape, s.side_kind, s.radius, end0, end1, side, touch0, touch1, arc);
  for (int i = 0; i < 3; ++i) path.before[i] = touch0[i] - end0[i], path.after[i] = end1[i] - touch1[i];
  const V length0 = normalize<3>(path.before), length1 = normalize<3>(path.after);
  path.length = select(path.wraps, length0 + arc + length1, path.length);
  rotate(path.before, rot, path.before);
  rotate(path.after, rot, path.after);
  path.touch0 = path.touch1 = geom;
  rotate(path.touch0.pos, rot, touch0);
  rotate(path.touch1.pos, rot, touch1);
  for (int i = 0; i < 3; ++i) path.touch0.pos[i] += centre[i], path.touch1.pos[i] += centre[i];
  return path;
}

/// Adds a segment to the tendon's length and arms. A dof that moves both ends of a straight piece leaves its length
/// alone and is left out.
/// Reads kinematics; changes w.arm, `length`.
template <class L>
COHORT_KERNEL void add_segment(const ModelView& m, Workspace<L>& w, const TendonRecord& tendon, const SegmentRecord& s,
                               typename L::V& length) {
  using V = typename L::V;
  const V zero(0.0f), scale(s.scale);
  const SegmentPath<L> path = segment_path<L>(m, w, s);
  length = fma(path.length, scale, length);
  for (int k = 0; k < tendon.wrap_count; ++k) {
    const int d = m.wrap[tendon.first_wrap + k].dof, moves = m.segment_move[s.first_move + k];
    if (moves == 0) continue;
    const bool site1 = (moves & kMovesSite1) != 0, geom = (moves & kMovesGeom) != 0, site2 = (moves & kMovesSite2) != 0;
    const auto rate = [&](const PathPoint<V>& from, bool moves_from, const PathPoint<V>& to, bool moves_to,
                          const V* direction) {
      if (moves_from == moves_to) return zero;
      return moves_to ? pull<L>(w, d, to.pos, direction) : -pull<L>(w, d, from.pos, direction);
    };
    V arm = rate(path.p0, site1, path.p1, site2, path.straight);
    if (s.shape != kStraight) {
      const V around =
          rate(path.p0, site1, path.touch0, geom, path.before) + rate(path.touch1, geom, path.p1, site2, path.after);
      arm = select(path.wraps, around, arm);
    }
    w.arm[tendon.first_wrap + k] = fma(arm, scale, w.arm[tendon.first_wrap + k]);
  }
}

/// Writes w.ten_length, w.ten_velocity, and w.arm of spatial tendons, from the kinematics and w.v.
template <class L>
COHORT_KERNEL void tendons(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    V length(0.0f), rate(0.0f);
    if (!tendon.spatial) {
      transmission(m, w, tendon.first_wrap, tendon.wrap_count, length, rate);
    } else {
      const int last = tendon.first_wrap + tendon.wrap_count;
      for (int k = tendon.first_wrap; k < last; ++k) w.arm[k] = V(0.0f);
      for (int k = 0; k < tendon.segment_count; ++k) {
        add_segment<L>(m, w, tendon, m.segment[tendon.first_segment + k], length);
      }
      for (int k = tendon.first_wrap; k < last; ++k) rate = fma(w.arm[k], w.v[m.wrap[k].dof], rate);
    }
    w.ten_length[t] = length;
    w.ten_velocity[t] = rate;
  }
}

/// The second derivative of a straight path's length by time at zero joint accelerations.
/// Reads kinematics, w.vel, w.acc.
template <class L>
COHORT_KERNEL typename L::V path_acceleration(const ModelView& m, const Workspace<L>& w, const TendonRecord& tendon) {
  using V = typename L::V;
  V sum(0.0f);
  for (int k = 0; k < tendon.segment_count; ++k) {
    const SegmentRecord& s = m.segment[tendon.first_segment + k];
    const PathPoint<V> p[2] = {path_point<L>(m, w, s.site1), path_point<L>(m, w, s.site2)};
    V along[3], velocity[3], acceleration[3];
    path_vector(along, p[0], p[1]);
    const V length = normalize<3>(along);
    for (int i = 0; i < 3; ++i) velocity[i] = acceleration[i] = V(0.0f);
    for (int e = 0; e < 2; ++e) {
      const int body = m.frame[e == 0 ? s.site1 : s.site2].body;
      if (body < 0) continue;
      V acc[6], omega[3], v[3], a[3];
      read<6>(acc, w.acc + 6 * body);
      // Gravity stands in it as an upward acceleration.
      for (int i = 0; i < 3; ++i) acc[3 + i] += gravity_of<L>(m, w, i);
      point_velocity<L>(w, body, p[e].pos, omega, v);
      point_acceleration<L>(w, body, acc, p[e].pos, omega, a);
      const V sign(e == 0 ? -1.0f : 1.0f);
      for (int i = 0; i < 3; ++i) {
        velocity[i] = fma(sign, v[i], velocity[i]);
        acceleration[i] = fma(sign, a[i], acceleration[i]);
      }
    }
    const V closing = dot3(along, velocity);
    const V across = max(dot3(velocity, velocity) - closing * closing, V(0.0f));
    const auto apart = length > V(1e-15f);
    const V turning = select(apart, across / select(apart, length, V(1.0f)), V(0.0f));
    sum = fma(dot3(along, acceleration) + turning, V(s.scale), sum);
  }
  return sum;
}

/// Adds the tendons' inertia to w.mass, as far as it has the entries, and with `bias` what it resists at zero joint
/// accelerations to w.smooth. Reads w.arm, w.acc.
template <class L>
COHORT_KERNEL void tendon_inertia(const ModelView& m, Workspace<L>& w, bool bias) {
  using V = typename L::V;
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    if (tendon.armature == 0) continue;
    const V armature(tendon.armature);
    const int last = tendon.first_wrap + tendon.wrap_count;
    for (int k = tendon.first_wrap; k < last; ++k) {
      const int i = m.wrap[k].dof;
      const V pulled = armature * wrap_arm<L>(m, w, k);
      for (int e = tendon.first_wrap; e < last; ++e) {
        const int j = m.wrap[e].dof;
        for (int c = m.pattern_start[i]; c < m.pattern_start[i + 1]; ++c) {
          if (m.pattern[c] != j) continue;
          const auto entry = w.mass + triangle(i, j);
          entry[0] = fma(pulled, wrap_arm<L>(m, w, e), entry[0]);
        }
      }
    }
    if (!bias || !tendon.spatial) continue;
    const V resisted = armature * path_acceleration<L>(m, w, tendon);
    for (int k = tendon.first_wrap; k < last; ++k) {
      w.smooth[m.wrap[k].dof] = fma(-w.arm[k], resisted, w.smooth[m.wrap[k].dof]);
    }
  }
}

}  // namespace cohort::sim
