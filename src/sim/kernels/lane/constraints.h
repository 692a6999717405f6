/// A block's constraints as they lie in memory. Rows that belong together form a group with one list of dofs; a group
/// exists in a block when any lane needs it, and lanes that do not need it give it no weight. The room that they
/// need is known from the model: constraint_capacity.
#pragma once
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

enum GroupKind : int {
  kGroupEquality = 0,    ///< one row, or three or six of two frames, quadratic everywhere
  kGroupFriction = 1,    ///< one row, Huber
  kGroupInequality = 2,  ///< one row, quadratic below zero: limits, frictionless contacts
  kGroupPyramid = 3,     ///< contact: normal and tangential rows, 2 (dim - 1) edges
  kGroupElliptic = 4,    ///< contact: normal and tangential rows, one cone
};

/// Offsets inside a group's piece of the pool, in values per lane.
struct GroupLayout {
  int jacobian, weight, aref, jar, jv, size;  ///< (dim, dofs); (weights); (edges) each, jv: of elliptic cones only
};
/// What a group's lanes share. Its numbers lie in Constraints::pool from `at` on: see GroupLayout.
struct Group {
  int kind, dim, dofs, first_dof;  ///< dim: rows of the Jacobian
  int edges;                       ///< rows of the constraint: 1, 2 (dim - 1) or dim
  int at;
  const float* friction;  ///< contacts: 5 coefficients, where own is 0
  float loss;             ///< friction
  float mu;               ///< elliptic: of the regularized cone
  int pair;               ///< contacts: which, otherwise -1; equalities: -2 - which
  int fits;               ///< the inertia matrix has an entry for every two of its dofs
  int own = 0;            ///< where in the piece the lanes' friction and mu, or loss, are, or 0: those here hold
  unsigned lanes = ~0u;   ///< bits of the lanes where it weighs anything; for the others it adds zeros
  GroupLayout layout{};   ///< of its piece; open_group sets it
  int next_of_tree = -1;  ///< the next group with dofs of the same tree, or -1; see RowCounts
};

/// Rows that are weighed one by one, or 1: all alike.
COHORT_LANE int weights_of(int kind, int dim) {
  return kind == kGroupElliptic || kind == kGroupEquality ? dim : 1;
}
/// jacobian: its size.
COHORT_LANE GroupLayout layout_of(int kind, int dim, int jacobian, int edges) {
  GroupLayout l{};
  l.weight = jacobian;
  l.aref = l.weight + weights_of(kind, dim);
  l.jar = l.aref + edges;
  l.jv = l.jar + edges;
  l.size = l.jv + (kind == kGroupElliptic ? edges : 0);
  return l;
}
COHORT_LANE GroupLayout layout_of(const Group& g) {
  return layout_of(g.kind, g.dim, g.dim * g.dofs, g.edges);
}

/// A block's constraints. They have room for every group that can exist at once: constraint_capacity. Comments of
/// kernels call what `group` and `pool` hold the groups.
template <class L>
struct Constraints {
  Items<L, Group> group;
  int count;
  int pool_used;
  typename L::Ptr pool;
  typename L::Ptr rows, cones;         ///< for the line search, see line_search.h; cones follow the rows
  typename L::Ptr geom_pos, geom_rot;  ///< (ngeom, 3), (ngeom, 9), about each tree's reference point
  typename L::Ptr tree_box;            ///< (nbody, 6) of a tree's root: least and greatest corner around its geoms
  typename L::V contacts;              ///< detected per lane
  /// Lanes whose answer counts: no work is done for the others.
  typename L::M live = typename L::V(0.0f) == typename L::V(0.0f);
  typename L::M constrained;  ///< lanes with any row
  Separations separations;
  /// Somebody looks at the rows and at w.constraint after they are solved: sensors do, a step does not.
  bool rows_are_read = true;
  /// Somebody looks at where the contacts are, if the model keeps them: not in a step that leaves nothing of them.
  bool contacts_are_read = true;
  COHORT_DEVICE bool keeps_contacts(const ModelView& m) const {
    return m.keep_contacts != 0 && (contacts_are_read || m.adhesion != 0);
  }
  void* search = nullptr;  ///< on a GPU, and for models that are searched: memory of search_space.h
};

/// Where a sensor finds a contact, behind its group's values: distance (kFarApart: none in this lane), position about
/// the second geom's reference point, frame by rows.
struct KeptContact {
  static constexpr int kDist = 0, kPos = 1, kFrame = 4, kSize = 13;
};

/// Values of a row in Constraints::rows, of friction and others, and of a cone in Constraints::cones.
inline constexpr int kFrictionRowValues = 5, kRowValues = 3, kConeValues = 13;
/// Values of a row in Constraints::rows; bound and loss: of friction only.
enum RowAt : int { kRowNow, kRowRate, kRowWeight, kRowBound, kRowLoss };

/// Looks at every pair.
COHORT_LANE ConstraintCount count_constraints(const ModelView& m) {
  ConstraintCount n;
  const auto need = [](int kind, int dim, int jacobian, int edges) {
    const int rows = edges * (kind == kGroupFriction ? kFrictionRowValues : kRowValues);
    const bool cone = kind == kGroupElliptic;
    return ConstraintCapacity{1, layout_of(kind, dim, jacobian, edges).size, cone ? 0 : rows, cone ? kConeValues : 0};
  };
  const auto add = [&](int kind, int dim, int jacobian, int edges, int times, int extra = 0) {
    ConstraintCapacity one = need(kind, dim, jacobian, edges);
    one.pool += extra;
    n.others.groups += times, n.others.pool += times * one.pool, n.others.rows += times * one.rows;
  };
  for (int i = 0; i < m.neq; ++i) {
    const int dim = equality_dim(m.equality[i]);
    add(kGroupEquality, dim, dim * m.equality[i].dof_count, dim, 1);
  }
  for (int i = 0; i < m.nfriction; ++i) {
    add(kGroupFriction, 1, m.friction[i].dof_count, 1, 1, m.varies & kVariesLoss ? 1 : 0);
  }
  for (int i = 0; i < m.nlimit; ++i) add(kGroupInequality, 1, m.limit[i].dof_count, 1, 2);
  for (int i = 0; i < m.npair; ++i) {
    const PairRecord& p = m.pair[i];
    if (p.dof_count == 0 && !m.keep_contacts) continue;  // no rows
    const bool elliptic = m.option.elliptic != 0;
    const int kind = p.dim == 1 ? kGroupInequality : elliptic ? kGroupElliptic : kGroupPyramid;
    ConstraintCapacity one = need(kind, p.dim, p.dim * p.dof_count, contact_edges(p.dim, elliptic));
    if (m.varies & kVariesFriction) one.pool += kPairValues;
    if (m.keep_contacts) one.pool += KeptContact::kSize;
    const auto count = [&](int ConstraintCapacity::*of, long long ConstraintCount::*all) {
      n.*all += static_cast<long long>(p.max_contacts) * one.*of;
      n.largest.*of = one.*of > n.largest.*of ? one.*of : n.largest.*of;
    };
    count(&ConstraintCapacity::groups, &ConstraintCount::groups),
        count(&ConstraintCapacity::pool, &ConstraintCount::pool);
    count(&ConstraintCapacity::rows, &ConstraintCount::rows),
        count(&ConstraintCapacity::cones, &ConstraintCount::cones);
  }
  return n;
}
/// What blocks of so many lanes have to have room for: contacts of each lane up to the model's capacity, all of them
/// different ones. n: of count_constraints.
COHORT_LANE ConstraintCapacity capacity_of(const ConstraintCount& n, int contact_capacity, int lanes) {
  const long long some = static_cast<long long>(lanes) * contact_capacity;
  const auto of = [&](long long all, int one, int others) {
    return others + static_cast<int>(all / (one > 0 ? one : 1) < some ? all : some * one);
  };
  return {of(n.groups, n.largest.groups, n.others.groups), of(n.pool, n.largest.pool, n.others.pool),
          of(n.rows, n.largest.rows, n.others.rows), of(n.cones, n.largest.cones, n.others.cones)};
}
/// What a model's capacity depends on besides its records; never 0.
COHORT_LANE int capacity_key(const ModelView& m) {
  return 1 + (m.keep_contacts != 0 ? 2 : 0) + 4 * m.varies;
}
/// Of blocks of so many lanes.
COHORT_LANE ConstraintCapacity constraint_capacity(const ModelView& m, int lanes) {
  return capacity_of(m.counted == capacity_key(m) ? m.constraints : count_constraints(m), m.contact_capacity, lanes);
}

}  // namespace cohort::sim
