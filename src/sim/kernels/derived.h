/// What is stored of an evaluation besides the state: poses, inertias, velocities and forces of the links, by forward()
/// of the present state and by a step of the last state that it evaluated.
#pragma once
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/sense/sensors.h"
#include "sim/kernels/smooth/dynamics.h"
#include "sim/kernels/smooth/kinematics.h"

namespace cohort::sim {

/// n values of each lane to the rows of `field` from `row` on, in the lanes of `ok`.
template <class L>
COHORT_LANE void store_values(float* field, int row, const typename L::V* values, int n, int n_pad,
                              const BlockEnvs& envs, typename L::M ok) {
  for (int i = 0; i < n; ++i) {
    float* const to = field + static_cast<long long>(row + i) * n_pad;
    store_of<L>(to, envs, select(ok, values[i], load_of<L>(to, envs)));
  }
}

/// Position and orientation of a link in the world.
/// Reads kinematics.
template <class L>
COHORT_LANE void link_pose(const ModelView& m, const Workspace<L>& w, const LinkRecord& link, typename L::V* pos,
                           typename L::V* quat) {
  using V = typename L::V;
  for (int i = 0; i < 3; ++i) pos[i] = V(link.pos[i]);
  for (int i = 0; i < 4; ++i) quat[i] = V(link.quat[i]);
  if (link.body < 0) return;
  V R[9], x[3], q[4];
  read<9>(R, w.rot + 9 * link.body);
  read<3>(x, w.pos + 3 * link.body);
  rotate(pos, R, link.pos);
  const int root = m.body[link.body].root;
  for (int i = 0; i < 3; ++i) pos[i] += x[i] + w.origin[3 * root + i];
  matrix_to_quat(q, R);
  multiply_quat(quat, q, link.quat);
}

/// Reads kinematics; writes d.link_pos, d.link_quat as far as they are wanted.
template <class L>
COHORT_KERNEL void store_poses(const ModelView& m, const DataView& d, const BlockEnvs& envs, const Workspace<L>& w,
                               typename L::M ok, bool positions, bool orientations) {
  for (int k = 0; k < m.nlink; ++k) {
    typename L::V pos[3], quat[4];
    link_pose<L>(m, w, m.link[k], pos, quat);
    if (positions) store_values<L>(d.link_pos, 3 * k, pos, 3, d.n_pad, envs, ok);
    if (orientations) store_values<L>(d.link_quat, 4 * k, quat, 4, d.n_pad, envs, ok);
  }
}

/// A link's centre of mass about its tree's reference point, and that point from `origin`.
template <class L>
COHORT_LANE void link_centre(const ModelView& m, const Workspace<L>& w, const LinkRecord& link,
                             const typename L::V* origin, typename L::V* centre, typename L::V* from) {
  using V = typename L::V;
  for (int i = 0; i < 3; ++i) centre[i] = V(link.com[i]);
  reference_point<L>(m, w, link.body, from);
  for (int i = 0; i < 3; ++i) from[i] -= origin[i];
  if (link.body < 0) return;
  V R[9], x[3];
  read<9>(R, w.rot + 9 * link.body);
  read<3>(x, w.pos + 3 * link.body);
  rotate(centre, R, link.com);
  for (int i = 0; i < 3; ++i) centre[i] += x[i];
}

/// Torque about `about` (a point from `origin`) and force, along the world's axes, that contacts and the caller apply
/// to link k: MuJoCo's mj_rnePostConstraint without equalities and tendons. offset: the link's centre of mass from
/// `about`.
/// Reads kinematics, w.link_force, the groups.
template <class L>
COHORT_KERNEL void external_force(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c, int k,
                                  const typename L::V* origin, const typename L::V* about, const typename L::V* offset,
                                  unsigned lanes, typename L::V* total) {
  using V = typename L::V;
  for (int i = 0; i < 6; ++i) total[i] = V(0.0f);
  if (w.links_pushed) {
    V F[6];
    read<6>(F, w.link_force + 6 * k);
    for (int i = 0; i < 3; ++i) total[i] = F[3 + i], total[3 + i] = F[i];
    add_cross(total, offset, F);
  }
  for (int n = 0; n < c.count; ++n) {
    const Group& g = c.group[n];
    if (g.pair < 0 || g.dofs == 0 || (g.lanes & lanes) == 0) continue;  // a row that moves nothing has no force
    const GeomRecord &first = m.geom[m.pair[g.pair].geom1], &second = m.geom[m.pair[g.pair].geom2];
    if (first.link != k && second.link != k) continue;
    const auto piece = c.pool + g.at;
    V F[3], T[3], p[3], from[3];
    contact_force<L>(g, piece, F, T);
    read<3>(p, piece + (layout_of(g).size + KeptContact::kPos));
    reference_point<L>(m, w, second.body, from);
    for (int i = 0; i < 3; ++i) p[i] = p[i] + (from[i] - origin[i]) - about[i];
    add_cross(T, p, F);
    const bool against = first.link == k;
    for (int i = 0; i < 3; ++i) {
      total[i] = against ? total[i] - T[i] : total[i] + T[i];
      total[3 + i] = against ? total[3 + i] - F[i] : total[3 + i] + F[i];
    }
  }
}

/// Linear velocity of each link's origin, then its angular velocity, in the world: MuJoCo's mj_objectVelocity of
/// mjOBJ_XBODY, flg_local 0, its halves the other way round.
/// Reads kinematics, w.vel; writes d.link_twist.
template <class L>
COHORT_KERNEL void store_twists(const ModelView& m, const DataView& d, const BlockEnvs& envs, const Workspace<L>& w,
                                typename L::M ok) {
  using V = typename L::V;
  for (int k = 0; k < m.nlink; ++k) {
    const LinkRecord& link = m.link[k];
    V at[3], twist[6];
    for (int i = 0; i < 3; ++i) at[i] = V(0.0f);
    if (link.body >= 0) {
      V R[9], x[3];
      read<9>(R, w.rot + 9 * link.body);
      read<3>(x, w.pos + 3 * link.body);
      rotate(at, R, link.pos);
      for (int i = 0; i < 3; ++i) at[i] += x[i];
    }
    point_velocity<L>(w, link.body, at, twist + 3, twist);
    for (int i = 0; i < 6; ++i) twist[i] += V(0.0f);  // -0 into +0, which neighbours could leave
    store_values<L>(d.link_twist, 6 * k, twist, 6, d.n_pad, envs, ok);
  }
}

/// Forces of the contacts on each geom in the world's axes, as MuJoCo's mj_contactForce turned by the contact's frame:
/// the sum over geoms that are fixed to the world, then the sum over all others.
/// Reads the groups; writes d.geom_force.
template <class L>
COHORT_KERNEL void store_geom_forces(const ModelView& m, const DataView& d, const BlockEnvs& envs,
                                     const Constraints<L>& c, typename L::M ok) {
  using V = typename L::V;
  const unsigned lanes = lane_bits(ok);
  for (int i = 0; i < 6 * m.nfilegeom; ++i) {
    const V zero(0.0f);
    store_values<L>(d.geom_force, i, &zero, 1, d.n_pad, envs, ok);
  }
  for (int n = 0; n < c.count; ++n) {
    const Group& g = c.group[n];
    if (g.pair < 0 || g.dofs == 0 || (g.lanes & lanes) == 0) continue;  // a row that moves nothing has no force
    const GeomRecord &first = m.geom[m.pair[g.pair].geom1], &second = m.geom[m.pair[g.pair].geom2];
    V force[3], torque[3];
    contact_force<L>(g, c.pool + g.at, force, torque);
    for (int side = 0; side < 2; ++side) {
      const GeomRecord &own = side == 0 ? first : second, &other = side == 0 ? second : first;
      const int row = 6 * own.id + (other.body < 0 ? 0 : 3);
      for (int i = 0; i < 3; ++i) {
        const V sum = load_of<L>(d.geom_force + static_cast<long long>(row + i) * d.n_pad, envs);
        const V value = side == 0 ? sum - force[i] : sum + force[i];
        store_values<L>(d.geom_force, row + i, &value, 1, d.n_pad, envs, ok);
      }
    }
  }
}

/// Whether store_links stores what follows from the state alone, what contacts and the caller do to links, or both.
struct LinkParts {
  bool motion, forces;
};

/// MuJoCo's xipos, cinert, cvel and cfrc_ext, as far as d has them. Velocities and forces are about the centre of mass
/// of all links with the same root, of which the list of links has one behind the other.
/// Reads kinematics, w.vel, w.link_force, the groups; writes d.link_com, d.link_inertia, d.link_velocity,
/// d.link_external.
template <class L>
COHORT_KERNEL void store_links(const ModelView& m, const DataView& d, const BlockEnvs& envs, const Workspace<L>& w,
                               const Constraints<L>& c, typename L::M ok, LinkParts parts) {
  using V = typename L::V;
  const V zero(0.0f);
  const unsigned lanes = lane_bits(ok);
  for (int first = 1, end = 1; first < m.nlink; first = end) {
    while (end < m.nlink && d.link_root[end] == d.link_root[first]) ++end;
    V origin[3], about[3] = {zero, zero, zero}, com[3], from[3];
    reference_point<L>(m, w, m.link[first].body, origin);
    float mass = 0;
    for (int k = first; k < end; ++k) {
      const LinkRecord& link = m.link[k];
      mass += link.mass;
      link_centre<L>(m, w, link, origin, com, from);
      for (int i = 0; i < 3; ++i) about[i] = fma(V(link.mass), com[i] + from[i], about[i]);
    }
    if (mass > 1e-15f) {
      for (int i = 0; i < 3; ++i) about[i] *= V(1.0f / mass);
    } else {
      link_centre<L>(m, w, m.link[first], origin, com, from);
      for (int i = 0; i < 3; ++i) about[i] = com[i] + from[i];
    }
    for (int k = first; k < end; ++k) {
      const LinkRecord& link = m.link[k];
      link_centre<L>(m, w, link, origin, com, from);
      V values[10], offset[3], at[3];
      // `about` as a point about the link's own reference point.
      for (int i = 0; i < 3; ++i) at[i] = about[i] - from[i], offset[i] = com[i] - at[i];
      if (d.link_com != nullptr && parts.motion) {
        for (int i = 0; i < 3; ++i) values[i] = com[i] + from[i] + origin[i];
        store_values<L>(d.link_com, 3 * k, values, 3, d.n_pad, envs, ok);
      }
      if (d.link_inertia != nullptr && parts.motion) {
        BodyMass<V> own;
        read_mass_record(own, link);
        V R[9], x[3];
        for (int i = 0; i < 9; ++i) R[i] = V(i % 4 == 0 ? 1.0f : 0.0f);
        for (int i = 0; i < 3; ++i) x[i] = zero;
        if (link.body >= 0) {
          read<9>(R, w.rot + 9 * link.body);
          read<3>(x, w.pos + 3 * link.body);
        }
        for (int i = 0; i < 3; ++i) x[i] -= at[i];
        body_inertia(values, own, R, x);
        store_values<L>(d.link_inertia, 10 * k, values, 10, d.n_pad, envs, ok);
      }
      if (d.link_velocity != nullptr && parts.motion) {
        point_velocity<L>(w, link.body, at, values, values + 3);
        store_values<L>(d.link_velocity, 6 * k, values, 6, d.n_pad, envs, ok);
      }
      if (d.link_external != nullptr && parts.forces) {
        external_force<L>(m, w, c, k, origin, about, offset, lanes, values);
        for (int i = 0; i < 6; ++i) values[i] += zero;  // -0 into +0, which neighbours could leave
        store_values<L>(d.link_external, 6 * k, values, 6, d.n_pad, envs, ok);
      }
    }
  }
}

/// Reads w.qfrc_actuator, w.constraint; writes d.qfrc_actuator, d.qfrc_constraint, as far as d has them.
template <class L>
COHORT_KERNEL void store_forces(const ModelView& m, const DataView& d, const BlockEnvs& envs, const Workspace<L>& w,
                                typename L::M ok) {
  for (int i = 0; i < m.nv; ++i) {
    const typename L::V zero(0.0f), acts = w.qfrc_actuator[i] + zero, constrains = w.constraint[i] + zero;
    if (d.qfrc_actuator != nullptr) store_values<L>(d.qfrc_actuator, i, &acts, 1, d.n_pad, envs, ok);
    if (d.qfrc_constraint != nullptr) store_values<L>(d.qfrc_constraint, i, &constrains, 1, d.n_pad, envs, ok);
  }
}

/// What a step leaves behind (DataView::left) of the last evaluation, in the lanes of `ok`; with kLeftPresent poses and
/// velocities are computed anew from w.q and w.v, the state that the step ends in.
template <class L>
COHORT_KERNEL void store_left(const ModelView& m, const DataView& d, const BlockEnvs& envs, Workspace<L>& w,
                              const Constraints<L>& c, typename L::M ok) {
  const bool pos = (d.left & kLeftLinkPos) != 0, quat = (d.left & kLeftLinkQuat) != 0;
  const bool present = (d.left & kLeftPresent) != 0, links = (d.left & kLeftLinks) != 0;
  if ((d.left & kLeftForces) != 0) store_forces<L>(m, d, envs, w, ok);
  if ((d.left & kLeftGeomForces) != 0) store_geom_forces<L>(m, d, envs, c, ok);
  if (links && (!present || d.link_external != nullptr)) store_links<L>(m, d, envs, w, c, ok, {!present, true});
  if (present) {
    kinematics<L>(m, w);
    velocities<L>(m, w);
    if (links) store_links<L>(m, d, envs, w, c, ok, {true, false});
  }
  if (pos || quat) store_poses<L>(m, d, envs, w, ok, pos, quat);
  if ((d.left & kLeftTwists) != 0) store_twists<L>(m, d, envs, w, ok);
}

}  // namespace cohort::sim
