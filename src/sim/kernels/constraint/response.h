/// What one group of constraint rows does at a point: its cost, its forces and its second derivatives, by MuJoCo's
/// definitions (MuJoCo's documentation, "Constraint solver"; Todorov 2014).
#pragma once
#include "sim/kernels/constraint/groups.h"

namespace cohort::sim {

/// Where the rows of an elliptic cone are, in the coordinates U = (mu x_0, friction_k x_k) in which it is circular with
/// slope mu: N = U_0, T = |U_1..|. Above the cone no force acts, below the dual cone all rows are quadratic, between
/// them the distance from the cone is.
template <class L>
struct ConeZone {
  using V = typename L::V;
  using M = typename L::M;
  M top, bottom, middle;
  COHORT_LANE ConeZone(V mu, V N, V T, V D) {
    top = N >= mu * T;
    bottom = flip(top) & (fma(mu, N, T) <= V(0.0f));
    middle = flip(top) & flip(bottom) & (D > V(0.0f));
  }
};

/// The tangential part of `rows` in the cone's coordinates (1 .. dim - 1), and the square of its length. kDim, here and
/// below: the group's number of rows where the caller knows it, so that loops unroll; 0: it does not.
template <class L, int kDim = 0, class Rows>
COHORT_LANE typename L::V tangent_in_cone(const Group& g, typename L::Ptr piece, Rows rows, typename L::V* U) {
  using V = typename L::V;
  const int dim = kDim > 0 ? kDim : g.dim;
  V TT(0.0f);
  for (int k = 1; k < dim; ++k) {
    U[k] = rows[k] * friction_of<L>(g, piece, k - 1);
    TT = fma(U[k], U[k], TT);
  }
  return TT;
}

/// Rows of a friction loss: where the force has reached its limit, at either end.
template <class L>
COHORT_LANE void friction_ends(typename L::V loss, typename L::V force, typename L::M& high, typename L::M& low) {
  high = force >= loss;
  low = force <= -loss;
}

/// Which kinds a group of kDim rows may be of, as far as the caller knows: those of one row, those of several.
template <int kDim>
struct OfDim {
  static constexpr bool kOne = kDim <= 1, kMore = kDim != 1;
};

/// Forces at the group's present rows (piece[jar]), in the Jacobian's rows.
template <class L, int kDim = 0>
COHORT_LANE void forces_of(const Group& g, typename L::Ptr piece, typename L::V* force) {
  using V = typename L::V;
  const V zero(0.0f);
  const int dim = kDim > 0 ? kDim : g.dim;
  const GroupLayout& l = g.layout;
  const auto jar = piece + l.jar;
  const V D = piece[l.weight];
  force[0] = zero;
  if (OfDim<kDim>::kOne && g.kind == kGroupInequality) {
    force[0] = select(jar[0] < zero, -(D * jar[0]), zero);
  } else if (OfDim<kDim>::kMore && g.kind == kGroupPyramid) {
    for (int k = 1; k < dim; ++k) {
      const V f1 = select(jar[2 * k - 2] < zero, -(D * jar[2 * k - 2]), zero);
      const V f2 = select(jar[2 * k - 1] < zero, -(D * jar[2 * k - 1]), zero);
      force[0] = force[0] + (f1 + f2);
      force[k] = friction_of<L>(g, piece, k - 1) * (f1 - f2);
    }
  } else if (g.kind == kGroupEquality) {
    for (int i = 0; i < dim; ++i) force[i] = -(piece[l.weight + i] * jar[i]);
  } else if (OfDim<kDim>::kOne && g.kind == kGroupFriction) {
    const V f = -(D * jar[0]), loss = loss_of<L>(g, piece);
    typename L::M high, low;
    friction_ends<L>(loss, f, high, low);
    force[0] = select(high, loss, select(low, -loss, f));
  } else {
    const V mu = mu_of<L>(g, piece);
    V U[kMaxDim];
    const V T = sqrt(tangent_in_cone<L, kDim>(g, piece, jar, U)), N = mu * jar[0];
    const ConeZone<L> zone(mu, N, T, D);
    // In the middle N / T lies between -1 / mu and mu, so that only directions have to be kept from dividing by
    // nothing.
    const V inverse = V(1.0f) / max(T, V(1e-12f));
    const V middle = -(D * cone_share<L>(g, piece) * (fma(-mu, T, N) * mu));
    force[0] = select(zone.middle, middle, select(zone.bottom, -(D * jar[0]), zero));
    for (int k = 1; k < dim; ++k) {
      const V pushed = -(middle * (U[k] * inverse) * friction_of<L>(g, piece, k - 1));
      force[k] = select(zone.middle, pushed, select(zone.bottom, -(piece[l.weight + k] * jar[k]), zero));
    }
  }
}

/// Second derivatives at the rows `jar`, in the Jacobian's rows: symmetric, lower triangle, [r * dim + c], c <= r; what
/// no kind of its size writes is left as it is.
template <class L, int kDim, class Rows>
COHORT_LANE void curvature_at(const Group& g, typename L::Ptr piece, Rows jar, typename L::V* weight) {
  using V = typename L::V;
  const V zero(0.0f);
  const GroupLayout& l = g.layout;
  const int dim = kDim > 0 ? kDim : g.dim;
  const V D = piece[l.weight];
  weight[0] = zero;
  if (OfDim<kDim>::kOne && g.kind == kGroupInequality) {
    weight[0] = select(jar[0] < zero, D, zero);
  } else if (OfDim<kDim>::kMore && g.kind == kGroupPyramid) {
    for (int k = 1; k < dim; ++k) {
      const V mu = friction_of<L>(g, piece, k - 1);
      const V w1 = select(jar[2 * k - 2] < zero, D, zero), w2 = select(jar[2 * k - 1] < zero, D, zero);
      weight[0] = weight[0] + (w1 + w2);
      weight[k * dim] = mu * (w1 - w2);
      weight[k * dim + k] = mu * mu * (w1 + w2);
    }
  } else if (g.kind == kGroupEquality) {
    for (int i = 0; i < dim; ++i) weight[i * dim + i] = piece[l.weight + i];
  } else if (OfDim<kDim>::kOne && g.kind == kGroupFriction) {
    typename L::M high, low;
    friction_ends<L>(loss_of<L>(g, piece), -(D * jar[0]), high, low);
    weight[0] = select(high | low, zero, D);
  } else {
    const V mu = mu_of<L>(g, piece);
    V U[kMaxDim];
    const V T = sqrt(tangent_in_cone<L, kDim>(g, piece, jar, U)), N = mu * jar[0];
    const ConeZone<L> zone(mu, N, T, D);
    const V inverse = V(1.0f) / max(T, V(1e-12f));
    for (int k = 1; k < dim; ++k) U[k] = U[k] * inverse;
    const V Dm = D * cone_share<L>(g, piece);
    weight[0] = select(zone.middle, Dm * mu * mu, select(zone.bottom, D, zero));
    const V a = mu * (N * inverse), b = fma(mu, mu, -a);
    for (int k = 1; k < dim; ++k) {
      const V fk = friction_of<L>(g, piece, k - 1), Dk = piece[l.weight + k];
      weight[k * dim] = select(zone.middle, -(Dm * mu * mu * fk * U[k]), zero);
      for (int j = 1; j < k; ++j) {
        const V coupled = Dm * fk * friction_of<L>(g, piece, j - 1) * (a * U[j] * U[k]);
        weight[k * dim + j] = select(zone.middle, coupled, zero);
      }
      weight[k * dim + k] = select(zone.middle, Dm * fk * fk * fma(a * U[k], U[k], b), select(zone.bottom, Dk, zero));
    }
  }
}

/// Cost of a group whose rows are at x.
template <class L>
COHORT_LANE typename L::V cost_at(const Group& g, typename L::Ptr piece, typename L::Ptr x) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const GroupLayout& l = g.layout;
  const V D = piece[l.weight];
  V cost(0.0f);
  if (g.kind == kGroupEquality) {
    for (int e = 0; e < g.edges; ++e) cost = fma(piece[l.weight + e] * x[e], x[e], cost);
    return half * cost;
  }
  if (g.kind == kGroupFriction) {
    const V loss = loss_of<L>(g, piece), bound = loss / select(D > zero, D, V(1.0f));
    const V y = x[0];
    return select(abs(y) < bound, half * D * y * y, loss * (abs(y) - half * bound));
  }
  if (g.kind == kGroupElliptic) {
    const V mu = mu_of<L>(g, piece);
    V U[kMaxDim];
    const V T = sqrt(tangent_in_cone<L>(g, piece, x, U)), N = mu * x[0], r = fma(-mu, T, N);
    const ConeZone<L> zone(mu, N, T, D);
    for (int k = 0; k < g.dim; ++k) cost = fma(piece[l.weight + k] * x[k], x[k], cost);
    cost = select(zone.middle, D * cone_share<L>(g, piece) * r * r, select(zone.bottom, cost, zero));
    return half * cost;
  }
  for (int e = 0; e < g.edges; ++e) {
    const V y = min(V(x[e]), zero);
    cost = fma(D * y, y, cost);
  }
  return half * cost;
}

}  // namespace cohort::sim
