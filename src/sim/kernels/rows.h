/// Constraint rows of the present state: equality of joints and tendons, friction loss, limits, contacts. Rows that
/// belong together form a group with one list of dofs; a group exists in a block when any lane needs it, and lanes that
/// do not need it give it no weight.
#pragma once
#include "sim/kernels/actuation.h"
#include "sim/kernels/collide.h"
#include "sim/kernels/workspace.h"

namespace cohort::sim {

enum GroupKind : int {
  kGroupEquality = 0,    ///< one row, quadratic everywhere
  kGroupFriction = 1,    ///< one row, Huber
  kGroupInequality = 2,  ///< one row, quadratic below zero: limits, frictionless contacts
  kGroupPyramid = 3,     ///< contact: normal and tangential rows, 2 (dim - 1) edges
  kGroupElliptic = 4,    ///< contact: normal and tangential rows, one cone
};

/// What a group's lanes share. Its numbers lie in Constraints::pool from `at` on: see GroupLayout.
struct Group {
  int kind, dim, dofs, first_dof;  ///< dim: rows of the Jacobian
  int edges;                       ///< rows of the constraint: 1, 2 (dim - 1) or dim
  int at;
  const float* friction;  ///< contacts: 5 coefficients
  float loss;             ///< friction
  float mu;               ///< elliptic: of the regularized cone
  int pair;               ///< contacts: which, otherwise -1
  int fits;               ///< the inertia matrix has an entry for every two of its dofs
};

/// Offsets inside a group's piece of the pool, in values per lane.
struct GroupLayout {
  int jacobian, weight, aref, jar, jv, size;  ///< (dim, dofs); (dim or 1); (edges) each
};
COHORT_LANE GroupLayout layout_of(int kind, int dim, int dofs, int edges) {
  GroupLayout l{};
  l.weight = dim * dofs;
  l.aref = l.weight + (kind == kGroupElliptic ? dim : 1);
  l.jar = l.aref + edges;
  l.jv = l.jar + edges;
  l.size = l.jv + edges;
  return l;
}
COHORT_LANE GroupLayout layout_of(const Group& g) {
  return layout_of(g.kind, g.dim, g.dofs, g.edges);
}
COHORT_LANE int contact_edges(int dim, bool elliptic) {
  return dim == 1 ? 1 : elliptic ? dim : 2 * (dim - 1);
}

/// A block's constraints. Capacities are the model's: every group that can exist at once.
template <class L>
struct Constraints {
  Group* group;
  int count;
  int pool_used;
  typename L::Ptr pool;
  typename L::Ptr geom_pos, geom_rot;  ///< (ngeom, 3), (ngeom, 9), about each tree's reference point
  typename L::V contacts;              ///< detected per lane
  typename L::M constrained;           ///< lanes with any row
};

/// Groups and pool values that the model can need at most.
COHORT_LANE void constraint_capacity(const ModelView& m, int& groups, int& pool) {
  groups = pool = 0;
  const auto add = [&](int kind, int dim, int dofs, int edges, int times) {
    groups += times;
    pool += times * layout_of(kind, dim, dofs, edges).size;
  };
  for (int i = 0; i < m.neq; ++i) add(kGroupEquality, 1, m.equality[i].dof_count, 1, 1);
  for (int i = 0; i < m.nfriction; ++i) add(kGroupFriction, 1, m.friction[i].dof_count, 1, 1);
  for (int i = 0; i < m.nlimit; ++i) add(kGroupInequality, 1, m.limit[i].dof_count, 1, 2);
  for (int i = 0; i < m.npair; ++i) {
    const PairRecord& p = m.pair[i];
    const bool elliptic = m.option.elliptic != 0;
    const int kind = p.dim == 1 ? kGroupInequality : elliptic ? kGroupElliptic : kGroupPyramid;
    add(kind, p.dim, p.dof_count, contact_edges(p.dim, elliptic), p.max_contacts);
  }
}

/// Impedance at distance `d` = position - margin.
template <class V>
COHORT_LANE V impedance(const SolverRecord& s, V d) {
  if (s.inverse_width == 0) return V(s.dmin);
  const V one(1.0f);
  const V x = min(abs(d) * V(s.inverse_width), one);
  V y = x;
  if (s.power == 2.0f) {
    // a x^2 below the midpoint, 1 - b (1 - x)^2 above.
    const V above = one - x;
    y = select(x <= V(s.midpoint), x * x * V(1.0f / s.midpoint), one - above * above * V(1.0f / (1.0f - s.midpoint)));
  } else if (s.power != 1.0f) {
    const V a = V(1.0f) / pow(V(s.midpoint), s.power - 1), b = V(1.0f) / pow(V(1.0f - s.midpoint), s.power - 1);
    y = select(x <= V(s.midpoint), a * pow(x, s.power), one - b * pow(one - x, s.power));
  }
  return fma(y, V(s.dmax - s.dmin), V(s.dmin));
}

/// Row r of a group's Jacobian times x.
template <class L>
COHORT_LANE typename L::V row_times(const ModelView& m, const Group& g, typename L::Ptr jacobian, int r,
                                    typename L::Ptr x) {
  using V = typename L::V;
  V s(0.0f);
  for (int k = 0; k < g.dofs; ++k) s = fma(jacobian[r * g.dofs + k], x[m.row_dof[g.first_dof + k]], s);
  return s;
}

/// From the Jacobian's rows to the constraint's: pyramid edges are normal +- friction * tangent.
template <class V>
COHORT_LANE void to_edges(const Group& g, const V* rows, V* edges) {
  if (g.kind == kGroupPyramid) {
    for (int k = 1; k < g.dim; ++k) {
      const V side = rows[k] * V(g.friction[k - 1]);
      edges[2 * k - 2] = rows[0] + side;
      edges[2 * k - 1] = rows[0] - side;
    }
  } else {
    for (int k = 0; k < g.edges; ++k) edges[k] = rows[k];
  }
}

inline constexpr int kMaxDim = 6;
inline constexpr int kMaxEdges = 10;

template <class L>
COHORT_LANE void edges_of(const ModelView& m, const Group& g, typename L::Ptr jacobian, typename L::Ptr x,
                          typename L::V* edges) {
  typename L::V rows[kMaxDim];
  for (int r = 0; r < g.dim; ++r) rows[r] = row_times<L>(m, g, jacobian, r, x);
  to_edges(g, rows, edges);
}

template <class L>
COHORT_LANE typename L::Ptr open_group(const Group& g, Constraints<L>& c) {
  c.group[c.count] = g;
  c.group[c.count].at = c.pool_used;
  const auto piece = c.pool + c.pool_used;
  c.pool_used += layout_of(g).size;
  ++c.count;
  return piece;
}

/// Writes weight and reference acceleration of a one-row group. `position` - margin is `d`; rows where `on` is false
/// weigh nothing.
template <class L>
COHORT_LANE void finish_row(const ModelView& m, Workspace<L>& w, Constraints<L>& c, const Group& g,
                            typename L::Ptr piece, const SolverRecord& s, float inverse_weight,
                            typename L::V impedance_at, typename L::V d, typename L::M on) {
  using V = typename L::V;
  const GroupLayout l = layout_of(g);
  const V imp = impedance(s, impedance_at);
  const V R = max((V(1.0f) - imp) * V(inverse_weight) / imp, V(1e-15f));
  piece[l.weight] = select(on, V(1.0f) / R, V(0.0f));
  const V vel = row_times<L>(m, g, piece, 0, w.v);
  piece[l.aref] = -(V(s.damping) * vel) - V(s.stiffness) * imp * d;
  c.constrained = c.constrained | on;
}

template <class L>
COHORT_KERNEL void equality_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int i = 0; i < m.neq; ++i) {
    const EqualityRecord& e = m.equality[i];
    const Group g{kGroupEquality, 1, e.dof_count, e.first_dof, 1, 0, nullptr, 0, 0, -1, e.dof_count == 1};
    const auto piece = open_group(g, c);
    V first, second(0.0f), rate;
    transmission(m, w, e.first_wrap1, e.wrap_count1, first, rate);
    V error = first - V(e.reference1) - V(e.polynomial[0]);
    V slope(0.0f);
    if (e.wrap_count2 > 0) {
      transmission(m, w, e.first_wrap2, e.wrap_count2, second, rate);
      const V x = second - V(e.reference2);
      const float* p = e.polynomial;
      error -= x * fma(x, fma(x, fma(x, V(p[4]), V(p[3])), V(p[2])), V(p[1]));
      slope = fma(x, fma(x, fma(x, V(4 * p[4]), V(3 * p[3])), V(2 * p[2])), V(p[1]));
    }
    for (int k = 0; k < e.wrap_count1; ++k) piece[k] = V(m.wrap[e.first_wrap1 + k].coefficient);
    for (int k = 0; k < e.wrap_count2; ++k) {
      piece[e.wrap_count1 + k] = -(slope * V(m.wrap[e.first_wrap2 + k].coefficient));
    }
    finish_row(m, w, c, g, piece, e.solver, e.weight, error, error, V(0.0f) == V(0.0f));
  }
}

template <class L>
COHORT_KERNEL void friction_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int i = 0; i < m.nfriction; ++i) {
    const FrictionRecord& f = m.friction[i];
    const Group g{kGroupFriction, 1, f.dof_count, f.first_dof, 1, 0, nullptr, f.loss, 0, -1, f.dof_count == 1};
    const auto piece = open_group(g, c);
    for (int k = 0; k < f.dof_count; ++k) {
      piece[k] = V(f.tendon < 0 ? 1.0f : m.wrap[m.tendon[f.tendon].first_wrap + k].coefficient);
    }
    finish_row(m, w, c, g, piece, f.solver, f.inverse_weight, V(0.0f), V(0.0f), V(0.0f) == V(0.0f));
  }
}

template <class L>
COHORT_KERNEL void limit_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int i = 0; i < m.nlimit; ++i) {
    const LimitRecord& limit = m.limit[i];
    const Group g{kGroupInequality,
                  1,
                  limit.dof_count,
                  limit.first_dof,
                  1,
                  0,
                  nullptr,
                  0,
                  0,
                  -1,
                  limit.kind != 2 || limit.dof_count == 1};
    if (limit.kind == 1) {
      V q[4], axis[3];
      read<4>(q, w.q + limit.index);
      normalize_quat(q);
      quat_to_rotation(axis, q);
      const V angle = sqrt(dot3(axis, axis));
      const V d = V(limit.upper) - angle - V(limit.margin);
      const auto on = d < V(0.0f);
      if (!any(on)) continue;
      const auto piece = open_group(g, c);
      const V inverse = V(-1.0f) / max(angle, V(1e-12f));
      for (int k = 0; k < 3; ++k) piece[k] = axis[k] * inverse;
      finish_row(m, w, c, g, piece, limit.solver, limit.inverse_weight, d, d, on);
      continue;
    }
    const V value = limit.kind == 0 ? w.q[limit.index] : w.ten_length[limit.index];
    for (int side = 0; side < 2; ++side) {
      const V d = (side == 0 ? value - V(limit.lower) : V(limit.upper) - value) - V(limit.margin);
      const auto on = d < V(0.0f);
      if (!any(on)) continue;
      const auto piece = open_group(g, c);
      for (int k = 0; k < limit.dof_count; ++k) {
        const float coefficient = limit.kind == 0 ? 1.0f : m.wrap[m.tendon[limit.index].first_wrap + k].coefficient;
        piece[k] = V(side == 0 ? coefficient : -coefficient);
      }
      finish_row(m, w, c, g, piece, limit.solver, limit.inverse_weight, d, d, on);
    }
  }
}

/// Poses of the geoms that may touch.
template <class L>
COHORT_KERNEL void geom_poses(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  for (int k = 0; k < m.ngeom; ++k) {
    const GeomRecord& geom = m.geom[k];
    const auto pos = c.geom_pos + 3 * k, rot = c.geom_rot + 9 * k;
    if (geom.body < 0) {
      for (int i = 0; i < 3; ++i) pos[i] = V(geom.pos[i]);
      for (int i = 0; i < 9; ++i) rot[i] = V(geom.rot[i]);
      continue;
    }
    V R[9], x[3], p[3];
    read<9>(R, w.rot + 9 * geom.body);
    read<3>(x, w.pos + 3 * geom.body);
    rotate(p, R, geom.pos);
    for (int i = 0; i < 3; ++i) pos[i] = p[i] + x[i];
    if (geom.shape == kCapsule) {
      const float axis[3] = {geom.rot[2], geom.rot[5], geom.rot[8]};
      V a[3];
      rotate(a, R, axis);
      for (int i = 0; i < 3; ++i) rot[3 * i + 2] = a[i];
    } else if (geom.shape != kSphere) {
      multiply3(R, R, geom.rot);
      write<9>(rot, R);
    }
  }
}

/// One contact of a pair: Jacobian in the contact frame, weights, reference accelerations.
template <class L>
COHORT_KERNEL void contact_group(const ModelView& m, Workspace<L>& w, Constraints<L>& c, int pair,
                                 const ContactPoint<typename L::V>& point, const typename L::V* shift1,
                                 typename L::M on) {
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
  const auto piece = open_group(g, c);
  const GroupLayout l = layout_of(g);
  V frame[9], at1[3];
  contact_frame(frame, point);
  for (int i = 0; i < 3; ++i) at1[i] = point.pos[i] + shift1[i];
  for (int k = 0; k < p.dof_count; ++k) {
    const int d = m.row_dof[p.first_dof + k];
    const float sign = m.row_sign[p.first_dof + k];
    V S[6];
    read<6>(S, w.axis + 6 * d);
    V lin[3] = {S[3], S[4], S[5]};
    add_cross(lin, S, sign < 0 ? at1 : point.pos);
    for (int r = 0; r < p.dim; ++r) {
      const V value = r < 3 ? dot3(frame + 3 * r, lin) : dot3(frame + 3 * (r - 3), S);
      piece[r * p.dof_count + k] = sign < 0 ? -value : value;
    }
  }
  const V d = point.dist - V(p.margin);
  const V imp = impedance(p.solver, d);
  const V base = (V(1.0f) - imp) / imp;
  V rows[kMaxDim], vel[kMaxEdges];
  for (int r = 0; r < g.dim; ++r) rows[r] = row_times<L>(m, g, piece, r, w.v);
  to_edges(g, rows, vel);
  if (g.kind == kGroupElliptic) {
    const V R0 = max(base * V(p.weight_tran), V(1e-15f));
    const float f0 = p.friction[0];
    for (int r = 0; r < g.dim; ++r) {
      const float share = r == 0 ? 1.0f : f0 * f0 / (m.option.impratio * p.friction[r - 1] * p.friction[r - 1]);
      piece[l.weight + r] = select(on, V(1.0f) / (R0 * V(share)), V(0.0f));
      piece[l.aref + r] = r == 0 ? -(V(p.solver.damping) * vel[r]) - V(p.solver.stiffness) * imp * d
                                 : -(V(p.friction_damping) * vel[r]);
    }
  } else {
    // A pyramid's edges share one weight that matches the elliptic cone's friction.
    const float scale = g.kind == kGroupPyramid ? 2 * p.mu * p.mu * (1 + p.friction[0] * p.friction[0]) : 1.0f;
    const V R = max(base * V(p.weight_tran * scale), V(1e-15f));
    piece[l.weight] = select(on, V(1.0f) / R, V(0.0f));
    const V push = V(p.solver.stiffness) * imp * d;
    for (int r = 0; r < g.edges; ++r) piece[l.aref + r] = -(V(p.solver.damping) * vel[r]) - push;
  }
  c.constrained = c.constrained | on;
}

template <class L>
COHORT_KERNEL void contact_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  geom_poses<L>(m, w, c);
  for (int k = 0; k < m.npair; ++k) {
    const PairRecord& p = m.pair[k];
    const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
    const int root1 = g1.body < 0 ? -1 : m.body[g1.body].root, root2 = g2.body < 0 ? -1 : m.body[g2.body].root;
    // shift: from the second tree's reference point to the first's.
    V shift1[3];
    for (int i = 0; i < 3; ++i) {
      const V o1 = root1 < 0 ? V(0.0f) : w.origin[3 * root1 + i], o2 = root2 < 0 ? V(0.0f) : w.origin[3 * root2 + i];
      shift1[i] = root1 == root2 ? V(0.0f) : o2 - o1;
    }
    PairPose<V> pose;
    read<3>(pose.pos1, c.geom_pos + 3 * p.geom1);
    read<3>(pose.pos2, c.geom_pos + 3 * p.geom2);
    for (int i = 0; i < 3; ++i) pose.pos1[i] -= shift1[i];
    const V reach(p.margin + p.gap);
    V d[3];
    for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i];
    if (g1.shape == kPlane) {
      read<9>(pose.rot1, c.geom_rot + 9 * p.geom1);
      const V height = fma(pose.rot1[8], d[2], fma(pose.rot1[5], d[1], pose.rot1[2] * d[0]));
      if (!any(height < V(p.margin + p.gap + g2.radius))) continue;
    } else {
      const float bound = p.margin + p.gap + g1.radius + g2.radius;
      if (!any(dot3(d, d) < V(bound * bound))) continue;
      read<9>(pose.rot1, c.geom_rot + 9 * p.geom1);
    }
    read<9>(pose.rot2, c.geom_rot + 9 * p.geom2);
    ContactPoint<V> points[4];
    narrow_phase(points, p.kernel, pose, g1.size, g2.size, reach);
    for (int i = 0; i < p.max_contacts; ++i) {
      const auto found = points[i].dist < reach;
      if (!any(found)) continue;
      c.contacts = c.contacts + select(found, V(1.0f), V(0.0f));
      const auto on = points[i].dist < V(p.margin);
      if (any(on)) contact_group<L>(m, w, c, k, points[i], shift1, on);
    }
  }
}

/// Every group of the present state; c.pool and c.group are the caller's.
template <class L>
COHORT_LANE void make_rows(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  c.count = c.pool_used = 0;
  c.contacts = V(0.0f);
  c.constrained = V(0.0f) != V(0.0f);
  equality_rows<L>(m, w, c);
  friction_rows<L>(m, w, c);
  limit_rows<L>(m, w, c);
  contact_rows<L>(m, w, c);
}

}  // namespace cohort::sim
