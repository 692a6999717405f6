/// How far two geoms are apart (MuJoCo's documentation, "collision sensors"): by the narrow phases of contacts, whether
/// the geoms may touch or not.
#pragma once
#include "sim/kernels/collide/collide_round.h"
#include "sim/kernels/collide/queue.h"
#include "sim/kernels/smooth/frames.h"

namespace cohort::sim {

/// Pose of a geom, and the reference point of its tree that the position is about.
/// Reads kinematics.
template <class L>
COHORT_LANE void geom_pose(const ModelView& m, const Workspace<L>& w, const GeomRecord& geom, typename L::V* pos,
                           typename L::V* rot, typename L::V* origin) {
  FrameRecord f{};
  f.body = geom.body;
  for (int i = 0; i < 3; ++i) f.pos[i] = geom.pos[i];
  for (int i = 0; i < 9; ++i) f.rot[i] = geom.rot[i];
  frame_pose<L>(w, f, pos, rot);
  reference_point<L>(m, w, geom.body, origin);
}

/// Of a sensor's pairs the nearest: its signed distance, the sensor's cutoff where none is nearer; the direction from the
/// point on the sensor's first geom to that on its second; these points, in the world. 0 where none is nearer.
/// Reads kinematics; writes out (1), (3) or (6), as the kind of sensor is.
template <class L>
COHORT_KERNEL void distance_sensor(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                   const SensorRecord& s, typename L::Ptr out) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const auto all = zero == zero;
  V best(s.cutoff), points[6];
  auto found = zero != zero;
  for (V& x : points) x = zero;
  V normal[3] = {zero, zero, zero};
  for (int k = s.first_distance; k < s.first_distance + s.distance_count; ++k) {
    const DistanceRecord& r = m.distance[k];
    const GeomRecord &g1 = m.geom[r.pair.geom1], &g2 = m.geom[r.pair.geom2];
    PairPose<V> pose;
    V from[3], origin[3];
    geom_pose<L>(m, w, g1, pose.pos1, pose.rot1, from);
    geom_pose<L>(m, w, g2, pose.pos2, pose.rot2, origin);
    for (int i = 0; i < 3; ++i) pose.pos1[i] += from[i] - origin[i];
    ContactPoint<V> contacts[kMaxPairContacts];
    int count = r.pair.max_contacts;
    if (r.pair.kernel >= kFirstQueued) {
      count = queue_narrow_phase<L>(contacts, m, r.pair, pose, all, Separations{}, -1, c.search);
    } else {
      narrow_phase(contacts, r.pair.kernel, pose, g1.size, g2.size, V(r.pair.margin));
    }
    for (int n = 0; n < count; ++n) {
      const ContactPoint<V>& contact = contacts[n];
      const auto nearer = contact.dist < best;
      best = select(nearer, contact.dist, best);
      found = found | nearer;
      for (int i = 0; i < 3; ++i) {
        const V middle = contact.pos[i] + origin[i], to = half * contact.dist * contact.normal[i];
        points[i] = select(nearer, r.swapped ? middle + to : middle - to, points[i]);
        points[3 + i] = select(nearer, r.swapped ? middle - to : middle + to, points[3 + i]);
        normal[i] = select(nearer, r.swapped ? -contact.normal[i] : contact.normal[i], normal[i]);
      }
    }
  }
  if (s.kind == kSensorDistance) out[0] = best;
  // Inside each other the second geom's point lies behind the first's.
  for (int i = 0; i < s.dim && s.kind == kSensorNormal; ++i) out[i] = select(best < zero, -normal[i], normal[i]);
  for (int i = 0; i < s.dim && s.kind == kSensorFromTo; ++i) out[i] = select(found, points[i], zero);
}

}  // namespace cohort::sim
