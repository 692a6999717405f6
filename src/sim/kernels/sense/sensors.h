/// Sensors of the present state, after the forward pass (MuJoCo's documentation, "Sensor" elements of the XML
/// reference).
#pragma once
#include "sim/kernels/constraint/response.h"
#include "sim/kernels/sense/contact_sensors.h"
#include "sim/kernels/sense/distance.h"
#include "sim/kernels/sense/rays.h"
#include "sim/kernels/sense/tendon_forces.h"
#include "sim/kernels/smooth/frames.h"

namespace cohort::sim {

/// w.full_acc := accelerations of the bodies, gravity standing in them as an upward acceleration.
/// Reads w.axis, w.acc, w.qacc; writes w.full_acc.
template <class L>
COHORT_KERNEL void body_accelerations(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  for (int b = 0; b < m.nbody; ++b) {
    const BodyRecord& body = m.body[b];
    V a[6];
    for (int i = 0; i < 6; ++i) a[i] = body.parent < 0 ? V(0.0f) : V(w.full_acc[6 * body.parent + i]);
    for (int d = body.first_dof; d < body.first_dof + body.dof_count; ++d) {
      for (int i = 0; i < 6; ++i) a[i] = fma(w.axis[6 * d + i], w.qacc[d], a[i]);
    }
    write<6>(w.full_acc + 6 * b, a);
  }
  for (int i = 0; i < 6 * m.nbody; ++i) w.full_acc[i] += w.acc[i];
}

/// Mass of a piece and, about its tree's reference point, its centre and its spatial inertia.
template <class L>
COHORT_LANE void piece_inertia(const Workspace<L>& w, int body, const BodyMass<typename L::V>& mass,
                               typename L::V* inertia) {
  using V = typename L::V;
  V R[9], x[3];
  for (int i = 0; i < 9; ++i) R[i] = V(i % 4 == 0 ? 1.0f : 0.0f);
  for (int i = 0; i < 3; ++i) x[i] = V(0.0f);
  if (body >= 0) {
    read<9>(R, w.rot + 9 * body);
    read<3>(x, w.pos + 3 * body);
  }
  body_inertia(inertia, mass, R, x);
}

/// Torque of a weld's rotation rows on its first body: the rows' rates are scale times the vector part of p (R1' a) for
/// a relative angular velocity a and p = q2^-1 q1, see frame_equality.
template <class L>
COHORT_LANE void weld_torque(const Workspace<L>& w, const FrameRecord& f1, const FrameRecord& f2, float torque_scale,
                             const typename L::V* rows, typename L::V* torque) {
  using V = typename L::V;
  V q1[4], q2[4], p[4], R[9], pos[3], local[3];
  frame_quat<L>(w, f1, q1);
  frame_quat<L>(w, f2, q2);
  for (int i = 1; i < 4; ++i) q2[i] = -q2[i];
  multiply_quat(p, q2, q1);
  frame_pose<L>(w, f1, pos, R);
  const V scale(0.5f * torque_scale);
  for (int i = 0; i < 3; ++i) local[i] = p[0] * rows[i];
  add_cross(local, rows, p + 1);
  for (int i = 0; i < 3; ++i) local[i] *= scale;
  rotate(torque, R, local);
}

/// Force and torque, about the reference point of the frame's tree, that the pieces get from the body above them: what
/// moves them less what acts on them from outside.
/// Reads kinematics, w.vel, w.full_acc, w.link_force, w.ten_force, the groups.
template <class L>
COHORT_KERNEL void interaction_force(const ModelView& m, Workspace<L>& w, Constraints<L>& c, const SensorRecord& s,
                                     typename L::V* total) {
  using V = typename L::V;
  const int body = m.frame[s.frame].body;
  V origin[3];
  reference_point<L>(m, w, body, origin);
  for (int i = 0; i < 6; ++i) total[i] = V(0.0f);
  for (int k = s.first_piece; k < s.first_piece + s.piece_count; ++k) {
    const PieceRecord& p = m.piece[k];
    V I[10], v[6], a[6], f[6], momentum[6], from[3];
    piece_inertia<L>(w, p.body, piece_mass_of<L>(m, w, k), I);
    for (int i = 0; i < 3; ++i) v[i] = v[3 + i] = a[i] = V(0.0f), a[3 + i] = -gravity_of<L>(m, w, i);
    if (p.body >= 0) {
      read<6>(v, w.vel + 6 * p.body);
      read<6>(a, w.full_acc + 6 * p.body);
    }
    multiply_inertia(f, I, a);
    multiply_inertia(momentum, I, v);
    add_cross_force(f, v, momentum);
    reference_point<L>(m, w, p.body, from);
    for (int i = 0; i < 3; ++i) from[i] -= origin[i];
    add_cross(f, from, f + 3);
    for (int i = 0; i < 6; ++i) total[i] += f[i];
  }
  // Takes off a force F and torque T at p, which is about the point `from`.
  const auto outside = [&](const V* p, const V* from, const V* F, const V* T, bool opposite) {
    V at[3], moment[3] = {T[0], T[1], T[2]};
    for (int i = 0; i < 3; ++i) at[i] = p[i] + (from[i] - origin[i]);
    add_cross(moment, at, F);
    for (int i = 0; i < 3; ++i) {
      total[i] = opposite ? total[i] + moment[i] : total[i] - moment[i];
      total[3 + i] = opposite ? total[3 + i] + F[i] : total[3 + i] - F[i];
    }
  };
  const int* pairs = m.sensor_match + s.first_match;
  const int* equalities = pairs + m.npair;
  const int* links = equalities + m.neq;
  for (int k = 0; k < m.nlink; ++k) {
    if (!links[k]) continue;
    const LinkRecord& link = m.link[k];
    V F[6], at[3], from[3];
    centre_of<L>(m, w, k, at);
    read<6>(F, w.link_force + 6 * k);
    if (link.body >= 0) {  // else it is part of the world, to which what pulls at it is passed on all the same
      V R[9], x[3];
      read<9>(R, w.rot + 9 * link.body);
      read<3>(x, w.pos + 3 * link.body);
      rotate(at, R, at);
      for (int i = 0; i < 3; ++i) at[i] += x[i];
    }
    reference_point<L>(m, w, link.body, from);
    outside(at, from, F, F + 3, false);
  }
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    const auto piece = c.pool + g.at;
    const bool contact = g.pair >= 0, equality = g.pair <= -2;
    const int match = contact ? pairs[g.pair] : equality ? equalities[-2 - g.pair] : 0;
    if (match == 0 || g.dofs == 0) continue;  // a row that moves nothing has no force
    V F[3], T[3], p[3], from[3], rot[9];
    if (contact) {
      contact_force<L>(g, piece, F, T);
      read<3>(p, piece + (layout_of(g).size + KeptContact::kPos));
      reference_point<L>(m, w, m.geom[m.pair[g.pair].geom2].body, from);
      outside(p, from, F, T, match < 0);
    } else {
      const EqualityRecord& e = m.equality[-2 - g.pair];
      V force[kMaxDim] = {};
      forces_of<L>(g, piece, force);
      for (int i = 0; i < 3; ++i) F[i] = force[i], T[i] = V(0.0f);
      if (g.dim == 6) weld_torque<L>(w, m.frame[e.frame1], m.frame[e.frame2], e.torque_scale, force + 3, T);
      const auto pull_at = [&](int frame, bool opposite) {
        const FrameRecord& f = m.frame[frame];
        frame_pose<L>(w, f, p, rot);
        reference_point<L>(m, w, f.body, from);
        outside(p, from, F, T, opposite);
      };
      // As long as the ends are apart, opposite forces at both of them make a torque.
      if (match > 0) pull_at(e.frame1, false);
      if (match < 0 || match == kMatchBoth) pull_at(e.frame2, true);
    }
  }
  if (!pulls_links(m)) return;
  const V none[3] = {V(0.0f), V(0.0f), V(0.0f)};
  tendon_pulls<L>(
      m, w, [&](int link) { return links[link] != 0; },
      [&](const PathPoint<V>& point, const V* force) { outside(point.pos, point.origin, force, none, false); });
}

/// Centre of mass, its velocity, and angular momentum about it, of a sensor's pieces, in the world.
/// Reads kinematics, w.vel.
template <class L>
COHORT_KERNEL void subtree_sums(const ModelView& m, Workspace<L>& w, const SensorRecord& s, typename L::V* com,
                                typename L::V* velocity, typename L::V* momentum) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f);
  V mass = zero;
  for (int i = 0; i < 3; ++i) com[i] = velocity[i] = momentum[i] = zero;
  // x, v, and angular momentum about x of a piece.
  const auto inverse_of = [&](V x) { return select(x > zero, one / select(x > zero, x, one), zero); };
  const auto piece_of = [&](int k, V* x, V* v, V* spin) {
    const PieceRecord& p = m.piece[k];
    const BodyMass<V> own = piece_mass_of<L>(m, w, k);
    V I[10], o[3], at[3];
    piece_inertia<L>(w, p.body, own, I);
    const V inverse = inverse_of(own.mass);
    for (int i = 0; i < 3; ++i) at[i] = I[6 + i] * inverse;
    point_velocity<L>(w, p.body, at, o, v);
    V twist[6] = {o[0], o[1], o[2], v[0], v[1], v[2]}, pv[3], h[6];
    // About the reference point: I (omega, v_reference); then moved to x.
    for (int i = 0; i < 3; ++i) pv[i] = v[i];
    add_cross(pv, at, o);
    for (int i = 0; i < 3; ++i) twist[3 + i] = pv[i];
    multiply_inertia(h, I, twist);
    add_cross(h, h + 3, at);
    reference_point<L>(m, w, p.body, x);
    for (int i = 0; i < 3; ++i) x[i] += at[i], spin[i] = h[i];
    return own.mass;
  };
  V x[3], v[3], spin[3];
  for (int k = s.first_piece; k < s.first_piece + s.piece_count; ++k) {
    const V own = piece_of(k, x, v, spin);
    mass += own;
    for (int i = 0; i < 3; ++i) com[i] = fma(own, x[i], com[i]), velocity[i] = fma(own, v[i], velocity[i]);
  }
  const V inverse = inverse_of(mass);
  for (int i = 0; i < 3; ++i) com[i] *= inverse, velocity[i] *= inverse;
  if (s.kind != kSensorSubtreeAngMom) return;
  for (int k = s.first_piece; k < s.first_piece + s.piece_count; ++k) {
    const V own = piece_of(k, x, v, spin);
    V arm[3], moving[3];
    for (int i = 0; i < 3; ++i) arm[i] = x[i] - com[i], moving[i] = own * (v[i] - velocity[i]);
    for (int i = 0; i < 3; ++i) momentum[i] += spin[i];
    add_cross(momentum, arm, moving);
  }
}

/// Fields of a rangefinder: distance, direction, origin and point of the ray, normal of what it meets (models that ask
/// for it are refused), and depth, for a site the distance; their values together.
inline constexpr int kRangeFields = 6, kRangeValues = 14;

/// ray_shape() of ray_geom k where environments have sizes of their own.
template <class L>
COHORT_KERNEL typename L::V own_ray_shape(const ModelView& m, const Workspace<L>& w, int k, const typename L::V* p,
                                          const typename L::V* d) {
  using V = typename L::V;
  GeomRecord geom = m.ray_geom[k];
  V t = ray_shape(geom.shape, geom.size, p, d);
  const auto other = flip(has_models_size<L>(w, m.ngeom + k, geom));
  for (int lane = 0; lane < L::kWidth && any(other); ++lane) {
    const auto here = other & only_lane<L>(lane);
    if (!any(here)) continue;
    take_own_size<L>(geom, w, m.ngeom + k, lane);
    t = select(here, ray_shape(geom.shape, geom.size, p, d), t);
  }
  return t;
}

/// Along the site's z axis to the first shape, to out: the fields, distances -1, directions and points 0 where there is
/// none.
/// Reads kinematics.
template <class L>
COHORT_KERNEL void range(const ModelView& m, Workspace<L>& w, const SensorRecord& s, typename L::V* out) {
  using V = typename L::V;
  V pos[3], rot[9], origin[3], best(kNoHit);
  const FrameRecord& site = m.frame[s.frame];
  frame_pose<L>(w, site, pos, rot);
  reference_point<L>(m, w, site.body, origin);
  for (int k = 0; k < m.nray; ++k) {
    const GeomRecord& geom = m.ray_geom[k];
    if (geom.link == s.link) continue;
    V at[3], turned[9], from[3], p[3], d[3];
    geom_pose<L>(m, w, geom, m.ngeom + k, at, turned, from);
    for (int i = 0; i < 3; ++i) p[i] = (pos[i] - at[i]) + (origin[i] - from[i]), d[i] = rot[3 * i + 2];
    rotate_back(p, turned, p);
    rotate_back(d, turned, d);
    const V t = geom.data >= 0                   ? ray_triangles(m, m.ray_mesh[geom.data], p, d)
                : (m.varies & kVariesSizes) != 0 ? own_ray_shape<L>(m, w, k, p, d)
                                                 : ray_shape(geom.shape, geom.size, p, d);
    nearer_hit(best, t, t >= V(0.0f));
  }
  const auto hit = best >= V(0.0f);
  int at = 0;
  for (int f = 0; f < kRangeFields; ++f) {
    if (!(s.fields >> f & 1)) continue;
    if (f == 0 || f == kRangeFields - 1) {
      out[at++] = best;
      continue;
    }
    for (int i = 0; i < 3; ++i) {
      const V start = pos[i] + origin[i], along = rot[3 * i + 2];
      out[at++] = f == 2 ? start : select(hit, f == 1 ? along : fma(best, along, start), V(0.0f));
    }
  }
}

/// A limit's constraint: how far it is from its margin, how fast that changes, its force; 0 where it does not act. Of
/// two ends that act at once the lower one's.
/// Reads w.q, w.v, w.ten_length, the groups.
template <class L>
COHORT_KERNEL typename L::V limit_sensor(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                         const SensorRecord& s) {
  using V = typename L::V;
  const V zero(0.0f);
  V value = zero;
  if (s.index < 0) return value;
  const LimitRecord& limit = m.limit[s.index];
  if (s.kind == kSensorLimitPos) {
    if (limit.kind == 1) {
      V q[4], axis[3];
      read<4>(q, w.q + limit.index);
      normalize_quat(q);
      quat_to_rotation(axis, q);
      return min(limit_of<L>(m, w, s.index, 1) - sqrt(dot3(axis, axis)) - V(limit.margin), zero);
    }
    const V at = limit.kind == 0 ? w.q[limit.index] : w.ten_length[limit.index];
    const V low = (at - limit_of<L>(m, w, s.index, 0)) - V(limit.margin),
            high = (limit_of<L>(m, w, s.index, 1) - at) - V(limit.margin);
    return select(low < zero, low, min(high, zero));
  }
  auto seen = zero != zero;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (g.kind != kGroupInequality || g.pair != -1 || g.first_dof != limit.first_dof) continue;
    const auto piece = c.pool + g.at;
    const auto here = flip(seen) & (piece[layout_of(g).weight] > zero);
    V own[kMaxDim];
    if (s.kind == kSensorLimitForce) {
      forces_of<L>(g, piece, own);
    } else {
      own[0] = row_times<L>(m, g, piece, 0, w.v);
    }
    value = select(here, own[0], value);
    seen = seen | here;
  }
  return value;
}

/// Where on a camera's image a site is, pixels from the upper left corner (MuJoCo's documentation, "camprojection").
/// Reads kinematics.
template <class L>
COHORT_LANE void camera_projection(const ModelView& m, const Workspace<L>& w, const SensorRecord& s,
                                   typename L::V* out) {
  using V = typename L::V;
  V p[3], R[9], o[3], eye[3], view[9], from[3], d[3];
  frame_pose<L>(w, m.frame[s.frame], p, R);
  reference_point<L>(m, w, m.frame[s.frame].body, o);
  frame_pose<L>(w, m.frame[s.reference], eye, view);
  reference_point<L>(m, w, m.frame[s.reference].body, from);
  for (int i = 0; i < 3; ++i) d[i] = (p[i] - eye[i]) + (o[i] - from[i]);
  rotate_back(d, view, d);
  const V least(1e-15f), depth = select(d[2] < V(0.0f), min(d[2], -least), max(d[2], least));
  for (int i = 0; i < 2; ++i) out[i] = fma(V(s.image[i]), d[i] / depth, V(s.image[2 + i]));
}

/// Position, orientation, velocity or acceleration of a frame, in the world or in a reference frame.
/// Reads kinematics, w.vel, w.full_acc.
template <class L>
COHORT_KERNEL void frame_sensor(const ModelView& m, Workspace<L>& w, const SensorRecord& s, typename L::V* out) {
  using V = typename L::V;
  const FrameRecord& f = m.frame[s.frame];
  const bool relative = s.reference >= 0;
  V p[3], R[9], o[3], p_ref[3], R_ref[9], o_ref[3], d[3];
  frame_pose<L>(w, f, p, R);
  reference_point<L>(m, w, f.body, o);
  for (int i = 0; i < 3; ++i) p_ref[i] = o_ref[i] = V(0.0f);
  if (relative) {
    frame_pose<L>(w, m.frame[s.reference], p_ref, R_ref);
    reference_point<L>(m, w, m.frame[s.reference].body, o_ref);
  }
  for (int i = 0; i < 3; ++i) d[i] = (p[i] - p_ref[i]) + (o[i] - o_ref[i]);
  if (s.kind == kSensorFrameQuat) {
    V r[4];
    frame_quat<L>(w, f, out);
    if (!relative) return;
    frame_quat<L>(w, m.frame[s.reference], r);
    for (int i = 1; i < 4; ++i) r[i] = -r[i];
    multiply_quat(out, r, out);
    return;
  }
  if (s.kind == kSensorFrameLinAcc || s.kind == kSensorFrameAngAcc || s.kind == kSensorAccelerometer) {
    V acc[6], angular[3], linear[3];
    for (int i = 0; i < 6; ++i) {
      acc[i] = f.body >= 0 ? V(w.full_acc[6 * f.body + i]) : i < 3 ? V(0.0f) : -gravity_of<L>(m, w, i - 3);
    }
    point_acceleration<L>(w, f.body, acc, p, angular, linear);
    for (int i = 0; i < 3; ++i) out[i] = s.kind == kSensorFrameAngAcc ? angular[i] : linear[i];
    if (s.kind == kSensorAccelerometer) rotate_back(out, R, out);
    return;
  }
  if (s.kind == kSensorFramePos) {
    for (int i = 0; i < 3; ++i) out[i] = d[i];
  } else if (s.kind == kSensorFrameAxis) {
    for (int i = 0; i < 3; ++i) out[i] = R[3 * i + s.index];
  } else {
    V angular[3], linear[3], angular_ref[3], linear_ref[3];
    point_velocity<L>(w, f.body, p, angular, linear);
    if (relative) {
      point_velocity<L>(w, m.frame[s.reference].body, p_ref, angular_ref, linear_ref);
      for (int i = 0; i < 3; ++i) angular[i] -= angular_ref[i], linear[i] -= linear_ref[i];
      add_cross(linear, d, angular_ref);
    }
    const bool turn = s.kind == kSensorFrameAngVel || s.kind == kSensorGyro;
    for (int i = 0; i < 3; ++i) out[i] = turn ? angular[i] : linear[i];
    if (s.kind == kSensorGyro || s.kind == kSensorVelocimeter) rotate_back(out, R, out);
  }
  if (relative) rotate_back(out, R_ref, out);
}

/// Writes w.sensordata. Reads what forward left: poses, velocities, w.qacc, the groups' final rows.
template <class L>
COHORT_KERNEL void sensors(const ModelView& m, Workspace<L>& w, Constraints<L>& c, typename L::V time) {
  using V = typename L::V;
  if (m.accelerations) body_accelerations<L>(m, w);
  if (pulls_links(m)) tendon_forces<L>(m, w, c);
  for (int k = 0; k < m.nsensor; ++k) {
    const SensorRecord& s = m.sensor[k];
    const auto out = w.sensordata + s.address;
    V value[kRangeValues], R[9], p[3];
    for (V& x : value) x = V(0.0f);
    switch (s.kind) {
      case kSensorClock:
        value[0] = time;
        break;
      case kSensorJointPos:
        value[0] = w.q[s.index];
        break;
      case kSensorJointVel:
        value[0] = w.v[s.index];
        break;
      case kSensorBallQuat:
        read<4>(value, w.q + s.index);
        normalize_quat(value);
        break;
      case kSensorBallVel:
        read<3>(value, w.v + s.index);
        break;
      case kSensorTendonPos:
        value[0] = w.ten_length[s.index];
        break;
      case kSensorTendonVel:
        value[0] = w.ten_velocity[s.index];
        break;
      case kSensorActuatorPos:
        value[0] = w.actuator_length[s.index];
        break;
      case kSensorActuatorVel:
        value[0] = w.actuator_velocity[s.index];
        break;
      case kSensorActuatorForce:
        value[0] = w.actuator_force[s.index];
        break;
      case kSensorJointActuatorForce:
        value[0] = w.qfrc_actuator[s.index];
        break;
      case kSensorTendonActuatorForce:
        for (int i = 0; i < m.nact; ++i) {
          if (m.actuator[i].tendon == s.index) value[0] += w.actuator_force[i];
        }
        break;
      case kSensorMagnetometer:
        frame_pose<L>(w, m.frame[s.frame], p, R);
        rotate_back(value, R, m.option.magnetic);
        break;
      case kSensorForce:
      case kSensorTorque: {
        V f[6];
        interaction_force<L>(m, w, c, s, f);
        frame_pose<L>(w, m.frame[s.frame], p, R);
        add_cross(f, f + 3, p);
        rotate_back(value, R, s.kind == kSensorForce ? f + 3 : f);
        break;
      }
      case kSensorTouch:
        value[0] = touch<L>(m, w, c, s);
        break;
      case kSensorRangefinder:
        range<L>(m, w, s, value);
        break;
      case kSensorContact:
        contact_sensor<L>(m, w, c, s);
        continue;
      case kSensorSubtreeCom:
      case kSensorSubtreeLinVel:
      case kSensorSubtreeAngMom: {
        V com[3], velocity[3], momentum[3];
        subtree_sums<L>(m, w, s, com, velocity, momentum);
        for (int i = 0; i < 3; ++i) {
          value[i] = s.kind == kSensorSubtreeCom ? com[i] : s.kind == kSensorSubtreeLinVel ? velocity[i] : momentum[i];
        }
        break;
      }
      case kSensorLimitPos:
      case kSensorLimitVel:
      case kSensorLimitForce:
        value[0] = limit_sensor<L>(m, w, c, s);
        break;
      case kSensorDistance:
      case kSensorNormal:
      case kSensorFromTo:
        distance_sensor<L>(m, w, c, s, out);
        continue;
      case kSensorCamProjection:
        camera_projection<L>(m, w, s, value);
        break;
      default:
        frame_sensor<L>(m, w, s, value);
    }
    for (int i = 0; i < s.dim; ++i) {
      if (s.cutoff > 0) {
        value[i] = min(value[i], V(s.cutoff));
        if (!s.positive) value[i] = max(value[i], V(-s.cutoff));
      }
      out[i] = value[i];
    }
  }
}

}  // namespace cohort::sim
