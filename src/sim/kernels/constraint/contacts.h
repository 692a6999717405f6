/// Rows of contacts: pairs of geoms that are near, their contacts, and for each its Jacobian, weights and reference
/// accelerations.
#pragma once
#include "sim/kernels/collide/geom_poses.h"
#include "sim/kernels/collide/pair_contacts.h"
#include "sim/kernels/constraint/groups.h"

namespace cohort::sim {

/// A row yields to its force by at least this share of what the bodies do: stiffer ones leave nothing of the bodies'
/// inertia in single precision. Only rows of a friction below about 0.01, or whose inverse weights are 0, are stiffer.
inline constexpr float kLeastCompliance = 1e-5f;

/// The Jacobian of a contact with kDim rows in the contact frame, to jacobian (kDim, dofs), and the rows' velocities,
/// to vel; returns how much the first row yields to its force. at1: the contact about the first geom's reference point.
template <class L, int kDim>
COHORT_LANE typename L::V contact_jacobian(const ModelView& m, const Workspace<L>& w, const PairRecord& p,
                                           const typename L::V* frame, const typename L::V* pos,
                                           const typename L::V* at1, typename L::Ptr jacobian, typename L::V* vel) {
  using V = typename L::V;
  V compliance(0.0f);
  for (int r = 0; r < kDim; ++r) vel[r] = V(0.0f);
  for (int k = 0; k < p.dof_count; ++k) {
    const int d = m.row_dof[p.first_dof + k];
    const bool first = m.row_sign[p.first_dof + k] < 0;
    V S[6];
    read<6>(S, w.axis + 6 * d);
    V lin[3] = {S[3], S[4], S[5]};
    add_cross(lin, S, first ? at1 : pos);
    const V v = w.v[d];
    for (int r = 0; r < kDim; ++r) {
      const V value = r < 3 ? dot3(frame + 3 * r, lin) : dot3(frame + 3 * (r - 3), S);
      const V entry = first ? -value : value;
      jacobian[r * p.dof_count + k] = entry;
      vel[r] = fma(entry, v, vel[r]);
      if (r == 0) compliance = fma(value * value, V(w.factor[triangle(d, d)]), compliance);
    }
  }
  return compliance;
}

/// One contact of a pair: Jacobian in the contact frame, weights, reference accelerations.
/// Reads w.axis, w.v, w.factor, w.origin and parameters; writes a new group to c.group and c.pool, c.constrained.
template <class L>
COHORT_KERNEL void contact_group(const ModelView& m, Workspace<L>& w, Constraints<L>& c, int pair,
                                 const ContactPoint<typename L::V>& point, const typename L::V* shift1,
                                 typename L::M on, typename L::M found) {
  using V = typename L::V;
  const PairRecord& p = m.pair[pair];
  const bool elliptic = m.option.elliptic != 0;
  Group g{};
  g.kind = p.dim == 1 ? kGroupInequality : elliptic ? kGroupElliptic : kGroupPyramid;
  g.dim = p.dim;
  g.dofs = p.dof_count;
  g.first_dof = p.first_dof;
  g.edges = contact_edges(p.dim, elliptic);
  g.friction = p.friction;
  g.mu = p.mu;
  g.pair = pair;
  g.fits = p.fits;
  g.lanes = lane_bits(on);
  const bool own = (m.varies & kVariesFriction) != 0;
  const int kept_size = c.keeps_contacts(m) ? KeptContact::kSize : 0;
  const GroupLayout l = layout_of(g);
  if (own) g.own = l.size + kept_size;
  const auto piece = open_group(g, c, kept_size + (own ? kPairValues : 0));
  if (own) {
    for (int i = 0; i < kPairValues; ++i) piece[g.own + i] = w.pair_values[kPairValues * pair + i];
  }
  V frame[9], at1[3];
  contact_frame(frame, point);
  if (c.keeps_contacts(m)) {
    const auto kept = piece + l.size;
    kept[KeptContact::kDist] = select(found, point.dist, V(kFarApart));
    write<3>(kept + KeptContact::kPos, point.pos);
    write<9>(kept + KeptContact::kFrame, frame);
  }
  for (int i = 0; i < 3; ++i) at1[i] = point.pos[i] + shift1[i];
  V compliance, rows[kMaxDim];
  with_dim(p.dim, [&](auto dim) {
    compliance = contact_jacobian<L, decltype(dim)::kDim>(m, w, p, frame, point.pos, at1, piece, rows);
  });
  const V least = max(compliance * V(kLeastCompliance), V(1e-15f));
  const V d = point.dist - V(p.margin);
  const V imp = impedance(p.solver, d);
  const V base = (V(1.0f) - imp) / imp;
  V vel[kMaxEdges];
  to_edges<L>(g, piece, rows, vel);
  if (g.kind == kGroupElliptic) {
    const V R0 = max(base * weight_of<L>(m, w, p.weight_tran, pair), least);
    const V f0 = friction_of<L>(g, piece, 0), one(1.0f);
    for (int r = 0; r < g.dim; ++r) {
      const V f = r == 0 ? one : friction_of<L>(g, piece, r - 1);
      const V share = r == 0 ? one : f0 * f0 / (V(m.option.impratio) * f * f);
      piece[l.weight + r] = select(on, one / (R0 * share), V(0.0f));
      piece[l.aref + r] = r == 0 ? -(V(p.solver.damping) * vel[r]) - V(p.solver.stiffness) * imp * d
                                 : -(V(p.friction_damping) * vel[r]);
    }
  } else {
    // A pyramid's edges share one weight that matches the elliptic cone's friction.
    V scale(1.0f);
    if (g.kind == kGroupPyramid) {
      const V mu = mu_of<L>(g, piece), f = friction_of<L>(g, piece, 0);
      scale = V(2.0f) * mu * mu * (V(1.0f) + f * f);
    }
    const V R = max(base * (weight_of<L>(m, w, p.weight_tran, pair) * scale), least);
    piece[l.weight] = select(on, V(1.0f) / R, V(0.0f));
    const V push = V(p.solver.stiffness) * imp * d;
    for (int r = 0; r < g.edges; ++r) piece[l.aref + r] = -(V(p.solver.damping) * vel[r]) - push;
  }
  c.constrained = c.constrained | on;
}

/// Contacts of consecutive pairs that are alike: those of different lanes share a group. A lane's contacts stay in the
/// order of its pairs, so that its sums are what they would be alone.
template <class L>
struct SharedContacts {
  using V = typename L::V;
  static constexpr int kMost = 8;  ///< groups; a fuller lane begins new ones
  ContactPoint<V> point[kMost];
  typename L::M on[kMost];
  V shift1[3], count;  ///< count: of each lane
  int used = 0, pair = 0;

  COHORT_LANE void flush(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
    for (int s = 0; s < used; ++s) contact_group<L>(m, w, c, pair, point[s], shift1, on[s], on[s]);
    used = 0;
  }
  COHORT_LANE void add(const ModelView& m, Workspace<L>& w, Constraints<L>& c, int k, const ContactPoint<V>& p,
                       const V* shift, typename L::M lanes) {
    if (used == kMost && any(lanes & (count >= V(static_cast<float>(kMost))))) flush(m, w, c);
    if (used == 0) {
      pair = k, count = V(0.0f);
      for (int i = 0; i < 3; ++i) shift1[i] = shift[i];
    }
    auto left = lanes;
    for (int s = 0; any(left); ++s) {
      const auto here = left & (count <= V(static_cast<float>(s)));
      if (s == used) {
        // The other lanes get numbers that are finite. Copied one by one: compilers copy the whole by a slow
        // instruction.
        ContactPoint<V>& to = point[s];
        to.dist = p.dist;
        for (int i = 0; i < 3; ++i) to.pos[i] = p.pos[i], to.normal[i] = p.normal[i], to.hint[i] = p.hint[i];
        on[s] = here, ++used;
      } else if (any(here)) {
        ContactPoint<V>& to = point[s];
        to.dist = select(here, p.dist, to.dist);
        for (int i = 0; i < 3; ++i) {
          to.pos[i] = select(here, p.pos[i], to.pos[i]);
          to.normal[i] = select(here, p.normal[i], to.normal[i]);
          to.hint[i] = select(here, p.hint[i], to.hint[i]);
        }
        on[s] = on[s] | here;
      }
      left = left & flip(here);
    }
    count = count + select(lanes, V(1.0f), V(0.0f));
  }
};

/// Rows of the contacts of pair k in the lanes where it is near.
template <class L>
COHORT_LANE void pair_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c, int k, typename L::M near,
                           bool share, SharedContacts<L>& shared) {
  using V = typename L::V;
  const PairRecord& p = m.pair[k];
  V shift1[3];
  ContactPoint<V> points[kMaxPairContacts];
  const int most = (m.varies & kVariesSizes) != 0 ? own_pair_contacts<L>(points, m, w, c, k, near, shift1)
                                                  : pair_contacts<L>(points, m, w, c, k, near, shift1);
  const V reach(m.pair_bound[k].reach);
  // Geoms that nothing moves against each other (an explicit pair of one body, or of the world) have contacts without
  // rows.
  const V acts_below(p.dof_count > 0 ? p.margin : -kFarApart), capacity(static_cast<float>(m.contact_capacity));
  for (int i = 0; i < most; ++i) {
    auto found = near & (points[i].dist < reach);
    if (!any(found)) continue;
    c.contacts = c.contacts + select(found, V(1.0f), V(0.0f));
    // A lane with more than that has lost its step already, and there is no room for them.
    found = found & (c.contacts <= capacity);
    if (!any(found)) continue;
    const auto on = found & (points[i].dist < acts_below);
    if (share) {
      if (any(on)) shared.add(m, w, c, k, points[i], shift1, on);
    } else if (c.keeps_contacts(m) || any(on)) {
      contact_group<L>(m, w, c, k, points[i], shift1, on, found);
    }
  }
}

/// Contacts of all pairs, as groups. Reads kinematics, w.v, w.factor; writes c.geom_pos, c.geom_rot, c.tree_box,
/// c.contacts and new groups; remembers separations.
template <class L>
COHORT_KERNEL void contact_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  geom_poses<L>(m, w, c);
  if (m.tree_boxes) tree_boxes<L>(m, c);
  // Where sensors ask for a pair's contacts or environments have numbers of their own, every pair has its own groups.
  const bool share =
      L::kWidth > 1 && !c.keeps_contacts(m) && (m.varies & (kVariesFriction | kVariesMass | kVariesArmature)) == 0;
  SharedContacts<L> shared;
  typename L::M lanes[L::kWidth > 1 ? kPairsAtOnce : 1];
  int looked_at = -1;
  for (int window = 0; kPairsAtOnce * window < m.npair; ++window) {
    const unsigned long long near = near_pairs<L>(m, w, c, window, lanes);
    for (unsigned long long left = near; left != 0; left &= left - 1) {
      const int i = lowest_bit(left), k = kPairsAtOnce * window + i;
      // Contacts are shared by pairs that are all alike from the first to the last.
      while (L::kWidth > 1 && shared.used > 0 && looked_at < k) {
        if (!m.pair[++looked_at].as_before) shared.flush(m, w, c);
      }
      looked_at = k;
      pair_rows<L>(m, w, c, k, L::kWidth > 1 ? lanes[i] : c.live, share, shared);
    }
  }
  if (L::kWidth > 1) shared.flush(m, w, c);
}

}  // namespace cohort::sim
