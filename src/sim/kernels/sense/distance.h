/// How far two geoms are apart (MuJoCo's documentation, "collision sensors"): by the narrow phases of contacts, whether
/// the geoms may touch or not.
#pragma once
#include "sim/kernels/collide/collide_round.h"
#include "sim/kernels/collide/own_geoms.h"
#include "sim/kernels/collide/queue.h"
#include "sim/kernels/smooth/frames.h"

namespace cohort::sim {

/// Pose of a geom, and the reference point of its tree that the position is about. k: as of own_value().
/// Reads kinematics, w.geom_values.
template <class L>
COHORT_LANE void geom_pose(const ModelView& m, const Workspace<L>& w, const GeomRecord& geom, int k, typename L::V* pos,
                           typename L::V* rot, typename L::V* origin) {
  reference_point<L>(m, w, geom.body, origin);
  if (m.varies & kVariesGeoms) return own_geom_pose<L>(w, k, geom.body, pos, rot);
  FrameRecord f{};
  f.body = geom.body;
  for (int i = 0; i < 3; ++i) f.pos[i] = geom.pos[i];
  for (int i = 0; i < 9; ++i) f.rot[i] = geom.rot[i];
  frame_pose<L>(w, f, pos, rot);
}

/// Gives take(contacts, count, here) the contacts of a pair of geoms in the lanes of `here`, until it had all lanes.
/// Where environments have geoms of their own size, as own_pair_contacts().
template <class L, class Take>
COHORT_LANE void contacts_of_distance(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                      const PairRecord& pair, const PairPose<typename L::V>& pose, const Take& take) {
  using V = typename L::V;
  using M = typename L::M;
  const M all = V(0.0f) == V(0.0f);
  const bool own_sizes = (m.varies & kVariesSizes) != 0;
  ContactPoint<V> contacts[kMaxPairContacts];
  if (pair.kernel < kFirstQueued) {
    V size1[3], size2[3];
    for (int i = 0; i < 3; ++i) {
      size1[i] = own_sizes ? own_value<L>(w, pair.geom1, kOwnSize + i) : V(m.geom[pair.geom1].size[i]);
      size2[i] = own_sizes ? own_value<L>(w, pair.geom2, kOwnSize + i) : V(m.geom[pair.geom2].size[i]);
    }
    narrow_phase(contacts, pair.kernel, pose, size1, size2, V(pair.margin));
    return take(contacts, pair.max_contacts, all);
  }
  // The nearest points alone: corners of faces that nearly lie on each other are farther apart.
  ModelView own = m;
  own.option.deepest_only = 1;
  if (!own_sizes) {
    const int count = queue_narrow_phase<L>(contacts, own, pair, pose, all, Separations{}, -1, c.search);
    return take(contacts, count, all);
  }
  GeomRecord geoms[2] = {m.geom[pair.geom1], m.geom[pair.geom2]};
  PairRecord p = pair;
  p.geom1 = 0, p.geom2 = 1;
  own.geom = geoms;
  const M as_model = has_models_size<L>(w, pair.geom1, geoms[0]) & has_models_size<L>(w, pair.geom2, geoms[1]);
  for (int lane = -1; lane < L::kWidth; ++lane) {
    const M here = lane < 0 ? as_model : flip(as_model) & only_lane<L>(lane);
    if (!any(here)) continue;
    if (lane >= 0) take_own_size<L>(geoms[0], w, pair.geom1, lane), take_own_size<L>(geoms[1], w, pair.geom2, lane);
    const int count = queue_narrow_phase<L>(contacts, own, p, pose, here, Separations{}, -1, c.search);
    take(contacts, count, here);
  }
}

/// Of a sensor's pairs the nearest: its signed distance, the sensor's cutoff where none is nearer; the direction from the
/// point on the sensor's first geom to that on its second; these points, in the world. 0 where none is nearer.
/// Reads kinematics; writes out (1), (3) or (6), as the kind of sensor is.
template <class L>
COHORT_KERNEL void distance_sensor(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                   const SensorRecord& s, typename L::Ptr out) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  V best(s.cutoff), points[6];
  auto found = zero != zero;
  for (V& x : points) x = zero;
  V normal[3] = {zero, zero, zero};
  for (int k = s.first_distance; k < s.first_distance + s.distance_count; ++k) {
    const DistanceRecord& r = m.distance[k];
    const GeomRecord &g1 = m.geom[r.pair.geom1], &g2 = m.geom[r.pair.geom2];
    PairPose<V> pose;
    V from[3], origin[3];
    geom_pose<L>(m, w, g1, r.pair.geom1, pose.pos1, pose.rot1, from);
    geom_pose<L>(m, w, g2, r.pair.geom2, pose.pos2, pose.rot2, origin);
    for (int i = 0; i < 3; ++i) pose.pos1[i] += from[i] - origin[i];
    contacts_of_distance<L>(m, w, c, r.pair, pose, [&](const ContactPoint<V>* contacts, int count, auto here) {
      for (int n = 0; n < count; ++n) {
        const ContactPoint<V>& contact = contacts[n];
        const auto nearer = here & (contact.dist < best);
        best = select(nearer, contact.dist, best);
        found = found | nearer;
        for (int i = 0; i < 3; ++i) {
          const V middle = contact.pos[i] + origin[i], to = half * contact.dist * contact.normal[i];
          points[i] = select(nearer, r.swapped ? middle + to : middle - to, points[i]);
          points[3 + i] = select(nearer, r.swapped ? middle - to : middle + to, points[3 + i]);
          normal[i] = select(nearer, r.swapped ? -contact.normal[i] : contact.normal[i], normal[i]);
        }
      }
    });
  }
  if (s.kind == kSensorDistance) out[0] = best;
  // Inside each other the second geom's point lies behind the first's.
  for (int i = 0; i < s.dim && s.kind == kSensorNormal; ++i) out[i] = select(best < zero, -normal[i], normal[i]);
  for (int i = 0; i < s.dim && s.kind == kSensorFromTo; ++i) out[i] = select(found, points[i], zero);
}

}  // namespace cohort::sim
