/// What every kind of constraint row is made with: a group's place in memory, impedance and reference acceleration, a
/// group's Jacobian times a vector.
#pragma once
#include "sim/kernels/lane/constraints.h"
#include "sim/kernels/lane/parameters.h"
#include "sim/kernels/lane/spatial.h"

namespace cohort::sim {

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

/// The limit of a friction loss, N or N m.
template <class L>
COHORT_LANE typename L::V loss_of(const Group& g, typename L::Ptr piece) {
  return g.own ? typename L::V(piece[g.own]) : typename L::V(g.loss);
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
