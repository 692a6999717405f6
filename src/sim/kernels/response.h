/// What one group of constraint rows does at a point: its cost, its forces and its second derivatives, by MuJoCo's
/// definitions (MuJoCo's documentation, "Constraint solver"; Todorov 2014).
#pragma once
#include "sim/kernels/groups.h"

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
    const auto flat = T <= V(0.0f);
    top = (N >= mu * T) | (flat & (N >= V(0.0f)));
    bottom = flip(top) & ((fma(mu, N, T) <= V(0.0f)) | flat);
    middle = flip(top) & flip(bottom) & (D > V(0.0f));
  }
};

/// The tangential part of `rows` in the cone's coordinates (1 .. dim - 1), and the square of its length.
template <class L, class Rows>
COHORT_LANE typename L::V tangent_in_cone(const Group& g, typename L::Ptr piece, Rows rows, typename L::V* U) {
  using V = typename L::V;
  V TT(0.0f);
  for (int k = 1; k < g.dim; ++k) {
    U[k] = rows[k] * friction_of<L>(g, piece, k - 1);
    TT = fma(U[k], U[k], TT);
  }
  return TT;
}

/// Rows of a friction loss: where the force has reached its limit, at either end.
template <class L>
COHORT_LANE void friction_ends(const Group& g, typename L::V force, typename L::M& high, typename L::M& low) {
  high = force >= typename L::V(g.loss);
  low = force <= -typename L::V(g.loss);
}

/// Forces at the group's present rows (piece[jar]), in the Jacobian's rows.
template <class L>
COHORT_LANE void forces_of(const Group& g, typename L::Ptr piece, typename L::V* force) {
  using V = typename L::V;
  const V zero(0.0f);
  const GroupLayout& l = g.layout;
  const auto jar = piece + l.jar;
  const V D = piece[l.weight];
  force[0] = zero;
  if (g.kind == kGroupInequality) {
    force[0] = select(jar[0] < zero, -(D * jar[0]), zero);
  } else if (g.kind == kGroupPyramid) {
    for (int k = 1; k < g.dim; ++k) {
      const V f1 = select(jar[2 * k - 2] < zero, -(D * jar[2 * k - 2]), zero);
      const V f2 = select(jar[2 * k - 1] < zero, -(D * jar[2 * k - 1]), zero);
      force[0] = force[0] + (f1 + f2);
      force[k] = friction_of<L>(g, piece, k - 1) * (f1 - f2);
    }
  } else if (g.kind == kGroupEquality) {
    for (int i = 0; i < g.dim; ++i) force[i] = -(piece[l.weight + i] * jar[i]);
  } else if (g.kind == kGroupFriction) {
    const V f = -(D * jar[0]);
    typename L::M high, low;
    friction_ends<L>(g, f, high, low);
    force[0] = select(high, V(g.loss), select(low, -V(g.loss), f));
  } else {
    const V mu = mu_of<L>(g, piece);
    V U[kMaxDim];
    const V T = sqrt(tangent_in_cone<L>(g, piece, jar, U)), N = mu * jar[0];
    const ConeZone<L> zone(mu, N, T, D);
    // In the middle N / T lies between -1 / mu and mu, so that only directions have to be kept from dividing by
    // nothing.
    const V inverse = V(1.0f) / max(T, V(1e-12f));
    const V middle = -(D * cone_share<L>(g, piece) * (fma(-mu, T, N) * mu));
    force[0] = select(zone.middle, middle, select(zone.bottom, -(D * jar[0]), zero));
    for (int k = 1; k < g.dim; ++k) {
      const V pushed = -(middle * (U[k] * inverse) * friction_of<L>(g, piece, k - 1));
      force[k] = select(zone.middle, pushed, select(zone.bottom, -(piece[l.weight + k] * jar[k]), zero));
    }
  }
}

/// Second derivatives at the group's present rows, in the Jacobian's rows: symmetric, lower triangle, [r * dim + c],
/// c <= r; what no kind of its size writes is left as it is.
template <class L>
COHORT_LANE void curvature_of(const Group& g, typename L::Ptr piece, typename L::V* weight) {
  using V = typename L::V;
  const V zero(0.0f);
  const GroupLayout& l = g.layout;
  const auto jar = piece + l.jar;
  const int dim = g.dim;
  const V D = piece[l.weight];
  weight[0] = zero;
  if (g.kind == kGroupInequality) {
    weight[0] = select(jar[0] < zero, D, zero);
  } else if (g.kind == kGroupPyramid) {
    for (int k = 1; k < dim; ++k) {
      const V mu = friction_of<L>(g, piece, k - 1);
      const V w1 = select(jar[2 * k - 2] < zero, D, zero), w2 = select(jar[2 * k - 1] < zero, D, zero);
      weight[0] = weight[0] + (w1 + w2);
      weight[k * dim] = mu * (w1 - w2);
      weight[k * dim + k] = mu * mu * (w1 + w2);
    }
  } else if (g.kind == kGroupEquality) {
    for (int i = 0; i < dim; ++i) weight[i * dim + i] = piece[l.weight + i];
  } else if (g.kind == kGroupFriction) {
    typename L::M high, low;
    friction_ends<L>(g, -(D * jar[0]), high, low);
    weight[0] = select(high | low, zero, D);
  } else {
    const V mu = mu_of<L>(g, piece);
    V U[kMaxDim];
    const V T = sqrt(tangent_in_cone<L>(g, piece, jar, U)), N = mu * jar[0];
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
    const V loss(g.loss), bound = loss / select(D > zero, D, V(1.0f));
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

/// Lanes in which every row of the group stays on its quadratic piece of the cost from piece[jar] to piece[jar] + alpha
/// piece[jv].
template <class L>
COHORT_LANE typename L::M same_piece(const Group& g, typename L::Ptr piece, typename L::V alpha) {
  using V = typename L::V;
  const V zero(0.0f);
  const GroupLayout& l = g.layout;
  const auto jar = piece + l.jar, jv = piece + l.jv;
  const V D = piece[l.weight];
  auto same = zero == zero;
  if (g.kind == kGroupEquality) return same;
  const auto equal = [](auto a, auto b) { return (a & b) | (flip(a) & flip(b)); };
  if (g.kind == kGroupFriction) {
    typename L::M high, low, high0, low0;
    friction_ends<L>(g, -(D * jar[0]), high0, low0);
    friction_ends<L>(g, -(D * fma(alpha, jv[0], jar[0])), high, low);
    same = equal(high, high0) & equal(low, low0);
  } else if (g.kind == kGroupElliptic) {
    // Between the cones the cost is not quadratic.
    V U[kMaxDim], x[kMaxDim];
    const V mu = mu_of<L>(g, piece);
    const ConeZone<L> before(mu, mu * jar[0], sqrt(tangent_in_cone<L>(g, piece, jar, U)), D);
    for (int k = 0; k < g.dim; ++k) x[k] = fma(alpha, jv[k], jar[k]);
    const ConeZone<L> after(mu, mu * x[0], sqrt(tangent_in_cone<L>(g, piece, x, U)), D);
    same = (before.top & after.top) | (before.bottom & after.bottom);
  } else {
    for (int e = 0; e < g.edges; ++e) same = same & equal(jar[e] < zero, fma(alpha, jv[e], jar[e]) < zero);
  }
  return same | (D <= zero);
}

/// Along the search, from alpha 0: adds what the group's cost at piece[jar] + alpha piece[jv] is above that at
/// piece[jar], and its first and second derivative by alpha.
template <class L>
COHORT_LANE void add_cost_along(const Group& g, typename L::Ptr piece, typename L::V alpha, typename L::V& cost,
                                typename L::V& d1, typename L::V& d2) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const GroupLayout& l = g.layout;
  const auto jar = piece + l.jar, jv = piece + l.jv;
  const V D = piece[l.weight];
  if (g.kind == kGroupInequality || g.kind == kGroupPyramid) {
    for (int e = 0; e < g.edges; ++e) {
      const V start = jar[e], v = jv[e], x = fma(alpha, v, start);
      const auto active = x < zero;
      const V y = select(active, x, zero), y0 = min(start, zero);
      // Where both count, x - start as it is before rounding.
      const V moved = select(active & (start < zero), alpha * v, y - y0);
      cost = fma(half * D * moved, y + y0, cost);
      d1 = fma(D * y, v, d1);
      d2 = fma(select(active, D, zero) * v, v, d2);
    }
    return;
  }
  if (g.kind == kGroupEquality) {
    for (int e = 0; e < g.edges; ++e) {
      const V start = jar[e], v = jv[e], x = fma(alpha, v, start), w = piece[l.weight + e];
      cost = fma(half * w * (alpha * v), x + start, cost);
      d1 = fma(w * x, v, d1);
      d2 = fma(w * v, v, d2);
    }
    return;
  }
  if (g.kind == kGroupFriction) {
    const V loss(g.loss), start = jar[0], v = jv[0], x = fma(alpha, v, start);
    const V bound = loss / select(D > zero, D, V(1.0f));
    const auto inside = abs(x) < bound, inside0 = abs(start) < bound;
    const V here = select(inside, half * D * x * x, loss * (abs(x) - half * bound));
    const V before = select(inside0, half * D * start * start, loss * (abs(start) - half * bound));
    const auto up = x > zero, up0 = start > zero;
    const auto same_side = flip(inside) & flip(inside0) & ((up & up0) | (flip(up) & flip(up0)));
    V dif = select(inside & inside0, half * D * (x - start) * (x + start), here - before);
    dif = select(same_side, loss * select(up, x - start, start - x), dif);
    cost += dif;
    d1 += v * select(inside, D * x, select(up, loss, -loss));
    d2 += select(inside, D * v * v, zero);
    return;
  }
  const V mu = mu_of<L>(g, piece), Dm = D * cone_share<L>(g, piece);
  V UU = zero, UV = zero, VV = zero;
  V quad0 = D * jar[0] * jar[0], quad1 = D * jar[0] * jv[0], quad2 = D * jv[0] * jv[0];
  for (int k = 1; k < g.dim; ++k) {
    const V f = friction_of<L>(g, piece, k - 1), Dk = piece[l.weight + k];
    const V u = jar[k] * f, v = jv[k] * f;
    UU = fma(u, u, UU), UV = fma(u, v, UV), VV = fma(v, v, VV);
    quad0 = fma(Dk * jar[k], jar[k], quad0), quad1 = fma(Dk * jar[k], jv[k], quad1),
    quad2 = fma(Dk * jv[k], jv[k], quad2);
  }
  const V U0 = mu * jar[0], V0 = mu * jv[0];
  const V delta = alpha * fma(alpha, VV, V(2.0f) * UV);
  const V T = sqrt(max(UU + delta, zero)), T0 = sqrt(UU), N = fma(alpha, V0, U0);
  const ConeZone<L> zone(mu, N, T, D), zone0(mu, U0, T0, D);
  const V r = fma(-mu, T, N), r0 = fma(-mu, T0, U0);
  const V line = alpha * fma(alpha * half, quad2, quad1);
  const V here = select(zone.middle, half * Dm * r * r, select(zone.bottom, fma(half, quad0, line), zero));
  const V start = select(zone0.middle, half * Dm * r0 * r0, select(zone0.bottom, half * quad0, zero));
  const V dr = fma(alpha, V0, -(mu * (delta / select(T + T0 > zero, T + T0, V(1.0f)))));
  V dif = select(zone.middle & zone0.middle, half * Dm * dr * fma(V(2.0f), r0, dr), here - start);
  dif = select(zone.bottom & zone0.bottom, line, dif);
  cost += dif;
  const V safe = max(T, V(1e-12f));
  const V T1 = fma(alpha, VV, UV) / safe;
  const V T2 = VV / safe - T1 * T1 / safe;
  const V slope = fma(-mu, T1, V0);
  d1 += select(zone.middle, Dm * r * slope, select(zone.bottom, fma(alpha, quad2, quad1), zero));
  d2 += select(zone.middle, Dm * fma(slope, slope, -(r * mu * T2)), select(zone.bottom, quad2, zero));
}

}  // namespace cohort::sim
