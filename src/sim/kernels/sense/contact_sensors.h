/// Sensors that look at contacts: touch, and the contact sensor with its fields and reductions.
#pragma once
#include "sim/kernels/constraint/contacts.h"
#include "sim/kernels/constraint/response.h"
#include "sim/kernels/sense/rays.h"
#include "sim/kernels/smooth/frames.h"

namespace cohort::sim {

/// Force and torque of a contact on its second geom, in the world's axes, at the contact. In the contact's frame
/// before, when `local` is not null: force, then torque.
template <class L>
COHORT_LANE void contact_force(const Group& g, typename L::Ptr piece, typename L::V* force, typename L::V* torque,
                               typename L::V* local = nullptr) {
  using V = typename L::V;
  V rows[kMaxDim];
  forces_of<L>(g, piece, rows);
  V frame[9];
  read<9>(frame, piece + (layout_of(g).size + KeptContact::kFrame));
  for (int i = 0; i < 3; ++i) force[i] = torque[i] = V(0.0f);
  for (int k = 0; k < 6; ++k) {
    const V f = k < g.dim ? rows[k] : V(0.0f);
    if (local) local[k] = f;
    if (k >= g.dim) continue;
    V* const to = k < 3 ? force : torque;
    for (int i = 0; i < 3; ++i) to[i] = fma(frame[3 * (k % 3) + i], f, to[i]);
  }
}

/// Sum of the normal forces of the site's link whose line meets the site's volume.
/// Reads kinematics, the groups.
template <class L>
COHORT_KERNEL typename L::V touch(const ModelView& m, Workspace<L>& w, Constraints<L>& c, const SensorRecord& s) {
  using V = typename L::V;
  V sum(0.0f), pos[3], rot[9], origin[3];
  const FrameRecord& site = m.frame[s.frame];
  frame_pose<L>(w, site, pos, rot);
  reference_point<L>(m, w, site.body, origin);
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (g.pair < 0) continue;
    const int match = m.sensor_match[s.first_match + g.pair];
    if (match == 0) continue;
    const auto piece = c.pool + g.at;
    const auto kept = piece + layout_of(g).size;
    V force[kMaxDim];
    forces_of<L>(g, piece, force);
    V p[3], d[3], from[3];
    reference_point<L>(m, w, m.geom[m.pair[g.pair].geom2].body, from);
    for (int i = 0; i < 3; ++i) {
      p[i] = (kept[KeptContact::kPos + i] - pos[i]) + (from[i] - origin[i]);
      d[i] = match > 0 ? -kept[KeptContact::kFrame + i] : V(kept[KeptContact::kFrame + i]);
    }
    rotate_back(p, rot, p);
    rotate_back(d, rot, d);
    const auto counts = (force[0] > V(0.0f)) & (ray_shape(s.shape, s.size, p, d) >= V(0.0f));
    sum += select(counts, force[0], V(0.0f));
  }
  return sum;
}

/// The contact sensor's fields: found, force, torque, distance, position, normal, first tangent, linear and angular
/// velocity; their values together.
inline constexpr int kContactFields = 9, kContactValues = 23;

/// Reads kinematics, the groups; writes the sensor's part of w.sensordata.
template <class L>
COHORT_KERNEL void contact_sensor(const ModelView& m, Workspace<L>& w, Constraints<L>& c, const SensorRecord& s) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f);
  const int sizes[kContactFields] = {1, 3, 3, 1, 3, 3, 3, 3, 3};
  const int starts[kContactFields] = {0, 1, 4, 7, 8, 11, 14, 17, 20};
  int slot_size = 0;
  for (int f = 0; f < kContactFields; ++f) slot_size += s.fields >> f & 1 ? sizes[f] : 0;
  const int slots = s.dim / slot_size;
  auto out = w.sensordata + s.address;
  V site_pos[3], site_rot[9], site_origin[3];
  if (s.shape >= 0) {
    frame_pose<L>(w, m.frame[s.frame], site_pos, site_rot);
    reference_point<L>(m, w, m.frame[s.frame].body, site_origin);
  }
  // One contact: which lanes have it and count it, its values in the order of the fields.
  const auto look = [&](const Group& g, int match, V* values, typename L::M& counts) {
    const auto piece = c.pool + g.at;
    const auto kept = piece + layout_of(g).size;
    V force[3], torque[3], from[3], p[3];
    counts = kept[KeptContact::kDist] < V(0.5f * kFarApart);
    reference_point<L>(m, w, m.geom[m.pair[g.pair].geom2].body, from);
    for (int i = 0; i < 3; ++i) values[8 + i] = kept[KeptContact::kPos + i] + from[i];
    if (s.shape >= 0) {
      for (int i = 0; i < 3; ++i) p[i] = (kept[KeptContact::kPos + i] - site_pos[i]) + (from[i] - site_origin[i]);
      rotate_back(p, site_rot, p);
      counts = counts & inside_shape<typename L::M>(s.shape, s.size, p);
    }
    contact_force<L>(g, piece, force, torque, values + 1);
    values[7] = kept[KeptContact::kDist];
    const bool flip_over = match < 0;
    if (flip_over) values[3] = -values[3], values[6] = -values[6];
    for (int i = 0; i < 3; ++i) {
      const V n = kept[KeptContact::kFrame + i], t = kept[KeptContact::kFrame + 3 + i];
      values[11 + i] = flip_over ? -n : n;
      values[14 + i] = flip_over ? -t : t;
    }
    if (s.fields >> 7 == 0) return;
    // Of the second geom against the first, at the contact and in its frame.
    V first[3], at1[3], at2[3], turn1[3], turn2[3], speed1[3], speed2[3];
    reference_point<L>(m, w, m.geom[m.pair[g.pair].geom1].body, first);
    read<3>(at2, kept + KeptContact::kPos);
    for (int i = 0; i < 3; ++i) at1[i] = at2[i] + (from[i] - first[i]);
    point_velocity<L>(w, m.geom[m.pair[g.pair].geom1].body, at1, turn1, speed1);
    point_velocity<L>(w, m.geom[m.pair[g.pair].geom2].body, at2, turn2, speed2);
    for (int i = 0; i < 3; ++i) {
      // Turned over, the frame's first two axes and the difference change their signs.
      const bool opposite = flip_over && i == 2;
      values[17 + i] = values[20 + i] = zero;
      for (int k = 0; k < 3; ++k) {
        const V axis = kept[KeptContact::kFrame + 3 * i + k], side = opposite ? -axis : axis;
        values[17 + i] = fma(side, speed2[k] - speed1[k], values[17 + i]);
        values[20 + i] = fma(side, turn2[k] - turn1[k], values[20 + i]);
      }
    }
  };
  typename L::M counts;
  V values[kContactValues], chosen[kContactValues], found = zero;
  for (V& value : values) value = zero;
  if (s.reduce == kReduceNetForce) {
    // The total wrench about the mean of the positions, weighed by the forces.
    for (V& value : chosen) value = zero;
    V weight = zero;
    for (int round = 0; round < 2; ++round) {
      for (int k = 0; k < c.count; ++k) {
        const Group& g = c.group[k];
        const int match = g.pair < 0 ? 0 : m.sensor_match[s.first_match + g.pair];
        if (match == 0) continue;
        look(g, match, values, counts);
        V force[3], torque[3], local[6], arm[3];
        contact_force<L>(g, c.pool + g.at, force, torque, local);
        if (round == 0) {
          const V size = select(counts, sqrt(dot3(local, local)), zero);
          weight += size;
          found += select(counts, one, zero);
          for (int i = 0; i < 3; ++i) chosen[8 + i] = fma(size, values[8 + i], chosen[8 + i]);
          continue;
        }
        for (int i = 0; i < 3; ++i) {
          force[i] = select(counts, match < 0 ? -force[i] : force[i], zero);
          torque[i] = select(counts, match < 0 ? -torque[i] : torque[i], zero);
          arm[i] = values[8 + i] - chosen[8 + i];
        }
        for (int i = 0; i < 3; ++i) chosen[1 + i] += force[i], chosen[4 + i] += torque[i];
        add_cross(chosen + 4, arm, force);
      }
      if (round == 0) {
        const V inverse = one / max(weight, V(1e-15f));
        for (int i = 0; i < 3; ++i) chosen[8 + i] *= inverse;
      }
    }
    chosen[0] = found;
    chosen[11] = chosen[15] = one;
    int at = 0;
    for (int f = 0; f < kContactFields; ++f) {
      if (!(s.fields >> f & 1)) continue;
      for (int i = 0; i < sizes[f]; ++i) out[at++] = select(found > zero, chosen[starts[f] + i], zero);
    }
    while (at < s.dim) out[at++] = zero;
    return;
  }
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    const int match = g.pair < 0 ? 0 : m.sensor_match[s.first_match + g.pair];
    if (match == 0) continue;
    look(g, match, values, counts);
    found += select(counts, one, zero);
  }
  // Slot by slot the next contact in the order of (criterion, index).
  V last(-3e38f), last_index(-1.0f);
  for (int slot = 0; slot < slots; ++slot) {
    V best(3e38f), best_index(-1.0f);
    for (V& value : chosen) value = zero;
    for (int k = 0; k < c.count; ++k) {
      const Group& g = c.group[k];
      const int match = g.pair < 0 ? 0 : m.sensor_match[s.first_match + g.pair];
      if (match == 0) continue;
      look(g, match, values, counts);
      V criterion = zero;
      if (s.reduce == kReduceMinDist) criterion = values[7];
      if (s.reduce == kReduceMaxForce) criterion = -dot3(values + 1, values + 1);
      const V index(static_cast<float>(k));
      const auto later = (criterion > last) | ((criterion == last) & (index > last_index));
      const auto take = counts & later & (criterion < best);
      best = select(take, criterion, best);
      best_index = select(take, index, best_index);
      values[0] = found;
      for (int i = 0; i < kContactValues; ++i) chosen[i] = select(take, values[i], chosen[i]);
    }
    last = best, last_index = best_index;
    int at = slot * slot_size;
    for (int f = 0; f < kContactFields; ++f) {
      if (!(s.fields >> f & 1)) continue;
      for (int i = 0; i < sizes[f]; ++i) out[at++] = chosen[starts[f] + i];
    }
  }
}

}  // namespace cohort::sim
