/// Constraint rows of the present state. Rows that belong together form a group with one list of dofs; a group exists
/// in a block when any lane needs it, and lanes that do not need it give it no weight.
#pragma once
#include "sim/kernels/data_view.h"
#include "sim/kernels/parameters.h"
#include "sim/kernels/spatial.h"
#include "sim/kernels/workspace.h"

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
  int own = 0;            ///< contacts: where in the piece the lanes' friction and mu are, or 0: friction and mu hold
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

/// A block's constraints. They have room for every group that can exist at once: constraint_capacity.
template <class L>
struct Constraints {
  Group* group;
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
  void* search = nullptr;  ///< on a GPU, and for models that are searched: memory of collide/search_space.h
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
  const auto add = [&](int kind, int dim, int jacobian, int edges, int times) {
    const ConstraintCapacity one = need(kind, dim, jacobian, edges);
    n.others.groups += times, n.others.pool += times * one.pool, n.others.rows += times * one.rows;
  };
  for (int i = 0; i < m.neq; ++i) {
    const int dim = equality_dim(m.equality[i]);
    add(kGroupEquality, dim, dim * m.equality[i].dof_count, dim, 1);
  }
  for (int i = 0; i < m.nfriction; ++i) add(kGroupFriction, 1, m.friction[i].dof_count, 1, 1);
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
  return 1 + 2 * m.varies + (m.keep_contacts != 0 ? 256 : 0);
}
/// Of blocks of so many lanes.
COHORT_LANE ConstraintCapacity constraint_capacity(const ModelView& m, int lanes) {
  return capacity_of(m.counted == capacity_key(m) ? m.constraints : count_constraints(m), m.contact_capacity, lanes);
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

/// f with a group's number of rows as a constant, so that its loops over them unroll.
template <int kRows>
struct Dim {
  static constexpr int kDim = kRows;
};
template <class F>
COHORT_LANE void with_dim(int dim, F f) {
  if (dim == 1) {
    f(Dim<1>{});
  } else if (dim == 3) {
    f(Dim<3>{});
  } else if (dim == 4) {
    f(Dim<4>{});
  } else {
    f(Dim<6>{});
  }
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

/// Coefficient k of a contact's friction, and mu of its cone.
template <class L>
COHORT_LANE typename L::V friction_of(const Group& g, typename L::Ptr piece, int k) {
  return g.own ? typename L::V(piece[g.own + k]) : typename L::V(g.friction[k]);
}
template <class L>
COHORT_LANE typename L::V mu_of(const Group& g, typename L::Ptr piece) {
  return g.own ? typename L::V(piece[g.own + 5]) : typename L::V(g.mu);
}

/// 1 / (mu^2 (1 + mu^2)): what the middle zone of an elliptic cone weighs its normal weight with.
template <class L>
COHORT_LANE typename L::V cone_share(const Group& g, typename L::Ptr piece) {
  using V = typename L::V;
  if (!g.own) return V(1.0f / (g.mu * g.mu * (1 + g.mu * g.mu)));
  const V mu = mu_of<L>(g, piece), one(1.0f);
  return one / (mu * mu * (one + mu * mu));
}

/// From the Jacobian's rows to the constraint's: pyramid edges are normal +- friction * tangent.
template <class L, class Edges>
COHORT_LANE void to_edges(const Group& g, typename L::Ptr piece, const typename L::V* rows, Edges edges) {
  using V = typename L::V;
  if (g.kind == kGroupPyramid) {
    for (int k = 1; k < g.dim; ++k) {
      const V side = rows[k] * friction_of<L>(g, piece, k - 1);
      edges[2 * k - 2] = rows[0] + side;
      edges[2 * k - 1] = rows[0] - side;
    }
  } else {
    for (int k = 0; k < g.edges; ++k) edges[k] = rows[k];
  }
}

inline constexpr int kMaxDim = 6;
inline constexpr int kMaxEdges = 10;

/// A matrix (kDim, n) times the elements of x that its columns stand for: kDim rows side by side, so that their sums do
/// not wait for each other.
template <class L, int kDim>
COHORT_LANE void columns_times(int n, const int* columns, typename L::Ptr matrix, typename L::Ptr x,
                               typename L::V* rows) {
  for (int r = 0; r < kDim; ++r) rows[r] = typename L::V(0.0f);
  for (int k = 0; k < n; ++k) {
    const typename L::V xk = x[columns[k]];
    for (int r = 0; r < kDim; ++r) rows[r] = fma(typename L::V(matrix[r * n + k]), xk, rows[r]);
  }
}

/// The group's rows times x, to edges[0 ..].
template <class L, class Edges>
COHORT_LANE void edges_of(const ModelView& m, const Group& g, typename L::Ptr jacobian, typename L::Ptr x,
                          Edges edges) {
  typename L::V rows[kMaxDim];
  with_dim(g.dim, [&](auto dim) {
    columns_times<L, decltype(dim)::kDim>(g.dofs, m.row_dof + g.first_dof, jacobian, x, rows);
  });
  to_edges<L>(g, jacobian, rows, edges);
}

/// The same for x and y, which share what is read.
template <class L, class Edges>
COHORT_LANE void edges_of_two(const ModelView& m, const Group& g, typename L::Ptr jacobian, typename L::Ptr x,
                              typename L::Ptr y, Edges edges_x, Edges edges_y) {
  using V = typename L::V;
  V rows_x[kMaxDim], rows_y[kMaxDim];
  with_dim(g.dim, [&](auto dim) {
    constexpr int kDim = decltype(dim)::kDim;
    const int* columns = m.row_dof + g.first_dof;
    const int n = g.dofs;
    for (int r = 0; r < kDim; ++r) rows_x[r] = rows_y[r] = V(0.0f);
    for (int k = 0; k < n; ++k) {
      const V xk = x[columns[k]], yk = y[columns[k]];
      for (int r = 0; r < kDim; ++r) {
        const V entry = jacobian[r * n + k];
        rows_x[r] = fma(entry, xk, rows_x[r]), rows_y[r] = fma(entry, yk, rows_y[r]);
      }
    }
  });
  to_edges<L>(g, jacobian, rows_x, edges_x);
  to_edges<L>(g, jacobian, rows_y, edges_y);
}

/// `extra`: further values behind the group's own.
template <class L>
COHORT_LANE typename L::Ptr open_group(const Group& g, Constraints<L>& c, int extra = 0) {
  // Copied one by one: compilers copy the whole by a slow instruction.
  Group& to = c.group[c.count];
  to.kind = g.kind, to.dim = g.dim, to.dofs = g.dofs, to.first_dof = g.first_dof, to.edges = g.edges;
  to.friction = g.friction, to.loss = g.loss, to.mu = g.mu;
  to.pair = g.pair, to.fits = g.fits, to.own = g.own, to.lanes = g.lanes;
  to.at = c.pool_used, to.layout = layout_of(g);
  const auto piece = c.pool + c.pool_used;
  c.pool_used += layout_of(g).size + extra;
  ++c.count;
  return piece;
}

/// Writes weight and reference acceleration of a one-row group. `position` - margin is `d`; rows where `on` is false
/// weigh nothing.
template <class L>
COHORT_LANE void finish_row(const ModelView& m, Workspace<L>& w, Constraints<L>& c, const Group& g,
                            typename L::Ptr piece, const SolverRecord& s, typename L::V inverse_weight,
                            typename L::V impedance_at, typename L::V d, typename L::M on) {
  using V = typename L::V;
  const GroupLayout l = layout_of(g);
  const V imp = impedance(s, impedance_at);
  const V R = max((V(1.0f) - imp) * inverse_weight / imp, V(1e-15f));
  piece[l.weight] = select(on, V(1.0f) / R, V(0.0f));
  c.group[c.count - 1].lanes = lane_bits(on);
  const V vel = row_times<L>(m, g, piece, 0, w.v);
  piece[l.aref] = -(V(s.damping) * vel) - V(s.stiffness) * imp * d;
  c.constrained = c.constrained | on;
}

}  // namespace cohort::sim
