/// The line search. It looks at the cost along one direction again and again: what it reads of the groups is put into
/// memory without gaps for it, and what does not change along the direction is computed once.
#pragma once
#include "sim/kernels/hessian.h"

namespace cohort::sim {

/// Values of a row in Constraints::rows; bound and loss: of friction only.
enum RowAt : int { kRowNow, kRowRate, kRowWeight, kRowBound, kRowLoss };
/// Values of an elliptic cone in Constraints::cones.
enum ConeAt : int {
  kConeU0,  ///< normal part now and its rate, in the coordinates of ConeZone
  kConeV0,
  kConeUU,  ///< products of the tangential parts now (U) and of their rates (V)
  kConeUV,
  kConeVV,
  kConeMu,
  kConeWeight,  ///< in the middle zone
  kConeQuad0,   ///< cost in the zone below, as a polynomial: quad0 + quad1 alpha + quad2 alpha^2 / 2
  kConeQuad1,
  kConeQuad2,
  kConeLength,  ///< tangential length now
  kConeCost,    ///< now
  kConeZone,    ///< now: 1 in the middle, -1 below, 0 above
};
static_assert(kConeZone + 1 == kConeValues);

/// What a line search looks at, in c.rows and c.cones: the groups that weigh in a lane of `lanes`. Groups come in the
/// order of these counts, except that cones lie apart.
template <class L>
struct SearchLine {
  unsigned lanes;
  int equalities, frictions, one_sided, cones;  ///< rows; cones
};

/// One cone of begin_line.
template <class L>
COHORT_LANE void put_cone(const Group& g, typename L::Ptr piece, typename L::Ptr to) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f), one(1.0f);
  const auto jar = piece + g.layout.jar, rate = piece + g.layout.jv, weight = piece + g.layout.weight;
  const V mu = mu_of<L>(g, piece), D = weight[0];
  V UU = zero, UV = zero, VV = zero;
  V quad0 = D * jar[0] * jar[0], quad1 = D * jar[0] * rate[0], quad2 = D * rate[0] * rate[0];
  for (int k = 1; k < g.dim; ++k) {
    const V f = friction_of<L>(g, piece, k - 1), Dk = weight[k], x = jar[k], r = rate[k];
    const V u = x * f, v = r * f;
    UU = fma(u, u, UU), UV = fma(u, v, UV), VV = fma(v, v, VV);
    quad0 = fma(Dk * x, x, quad0), quad1 = fma(Dk * x, r, quad1), quad2 = fma(Dk * r, r, quad2);
  }
  const V U0 = mu * jar[0], T = sqrt(UU), r = fma(-mu, T, U0), Dm = D * cone_share<L>(g, piece);
  const ConeZone<L> zone(mu, U0, T, D);
  // Lanes where it weighs nothing stay above the cone.
  const auto on = D > zero;
  to[kConeU0] = select(on, U0, one), to[kConeV0] = select(on, mu * rate[0], zero);
  to[kConeUU] = select(on, UU, zero), to[kConeUV] = select(on, UV, zero), to[kConeVV] = select(on, VV, zero);
  to[kConeMu] = mu, to[kConeWeight] = Dm;
  to[kConeQuad0] = half * quad0, to[kConeQuad1] = quad1, to[kConeQuad2] = quad2;
  to[kConeLength] = select(on, T, zero);
  to[kConeCost] = select(zone.middle, half * Dm * r * r, select(zone.bottom, half * quad0, zero));
  to[kConeZone] = select(zone.middle, one, select(zone.bottom, -one, zero));
}

/// Lays out the search along `search` from piece[jar], for groups that weigh in a lane of `lanes`.
template <class L>
COHORT_KERNEL SearchLine<L> begin_line(const ModelView& m, Constraints<L>& c, typename L::Ptr search, unsigned lanes) {
  using V = typename L::V;
  SearchLine<L> line{lanes, 0, 0, 0, 0};
  auto row = c.rows, cone = c.cones;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & lanes) == 0) continue;
    const auto piece = c.pool + g.at;
    const auto jar = piece + g.layout.jar, weight = piece + g.layout.weight;
    if (g.kind == kGroupElliptic) {
      edges_of<L>(m, g, piece, search, piece + g.layout.jv);
      put_cone<L>(g, piece, cone);
      cone = cone + kConeValues;
      ++line.cones;
      continue;
    }
    V rate[kMaxEdges];
    edges_of<L>(m, g, piece, search, rate);
    if (g.kind == kGroupInequality || g.kind == kGroupPyramid) {
      const V D = weight[0];
      for (int e = 0; e < g.edges; ++e, row = row + kRowValues) {
        row[kRowNow] = jar[e], row[kRowRate] = rate[e], row[kRowWeight] = D;
      }
      line.one_sided += g.edges;
    } else if (g.kind == kGroupEquality) {
      for (int e = 0; e < g.edges; ++e, row = row + kRowValues) {
        row[kRowNow] = jar[e], row[kRowRate] = rate[e], row[kRowWeight] = weight[e];
      }
      line.equalities += g.edges;
    } else {
      const V loss(g.loss), D = weight[0];
      row[kRowNow] = jar[0], row[kRowRate] = rate[0], row[kRowWeight] = D;
      row[kRowBound] = loss / select(D > V(0.0f), D, V(1.0f));
      row[kRowLoss] = loss;
      row = row + kFrictionRowValues;
      ++line.frictions;
    }
  }
  return line;
}

/// costs_along for one cone.
template <class L>
COHORT_LANE void add_cone_along(typename L::Ptr cone, typename L::V alpha, typename L::V& cost, typename L::V& d1,
                                typename L::V& d2) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f), half(0.5f), tiny(1e-12f);
  const V mu = cone[kConeMu], UV = cone[kConeUV], VV = cone[kConeVV], V0 = cone[kConeV0], start = cone[kConeCost];
  const V UV_here = fma(alpha, VV, UV), delta = alpha * (UV_here + UV);
  const V T = sqrt(max(cone[kConeUU] + delta, zero)), N = fma(alpha, V0, cone[kConeU0]);
  const M top = N >= mu * T, bottom = fma(mu, N, T) <= zero, middle = flip(top | bottom);
  const V quad1 = cone[kConeQuad1], quad2 = cone[kConeQuad2];
  const V change = alpha * fma(alpha * half, quad2, quad1);
  // Where it was below the cone as well, without what was there.
  const V below = select(cone[kConeZone] < zero, change, (cone[kConeQuad0] + change) - start);
  V dif = select(top, -start, below);
  V slope = select(top, zero, fma(alpha, quad2, quad1)), curvature = select(top, zero, quad2);
  if (any(middle)) {
    // Both quotients from one division.
    const V T0 = cone[kConeLength], Dm = cone[kConeWeight], half_Dm = half * Dm;
    const V sum = max(T + T0, tiny), safe = max(T, tiny), share = V(1.0f) / (sum * safe), inverse = share * sum;
    const V r = fma(-mu, T, N), r0 = fma(-mu, T0, cone[kConeU0]);
    const V dr = fma(alpha, V0, -(mu * (delta * (share * safe))));
    const V near = half_Dm * dr * fma(V(2.0f), r0, dr);
    dif = select(middle, select(cone[kConeZone] > zero, near, fma(half_Dm * r, r, -start)), dif);
    const V T1 = UV_here * inverse, T2 = fma(-T1, T1, VV) * inverse, rate = fma(-mu, T1, V0), push = Dm * r;
    slope = select(middle, push * rate, slope);
    curvature = select(middle, fma(Dm * rate, rate, -(push * (mu * T2))), curvature);
  }
  cost += dif;
  d1 += slope;
  d2 += curvature;
}

/// Adds what the rows' cost is at `alpha` above that at 0, and its first and second derivative.
template <class L>
COHORT_KERNEL void costs_along(const Constraints<L>& c, const SearchLine<L>& line, typename L::V alpha,
                               typename L::V& cost, typename L::V& d1, typename L::V& d2) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f), half(0.5f);
  V cost_sum = cost, d1_sum = d1, d2_sum = d2;
  auto row = c.rows;
  for (int k = 0; k < line.equalities; ++k, row = row + kRowValues) {
    const V start = row[kRowNow], v = row[kRowRate], D = row[kRowWeight], x = fma(alpha, v, start);
    cost_sum = fma(half * D * (alpha * v), x + start, cost_sum);
    d1_sum = fma(D * x, v, d1_sum);
    d2_sum = fma(D * v, v, d2_sum);
  }
  for (int k = 0; k < line.frictions; ++k, row = row + kFrictionRowValues) {
    const V start = row[kRowNow], v = row[kRowRate], D = row[kRowWeight], bound = row[kRowBound], loss = row[kRowLoss];
    const V x = fma(alpha, v, start);
    const M inside = abs(x) < bound, inside0 = abs(start) < bound;
    const V here = select(inside, half * D * x * x, loss * (abs(x) - half * bound));
    const V before = select(inside0, half * D * start * start, loss * (abs(start) - half * bound));
    const M up = x > zero, up0 = start > zero;
    const M same_side = flip(inside) & flip(inside0) & ((up & up0) | (flip(up) & flip(up0)));
    V dif = select(inside & inside0, half * D * (x - start) * (x + start), here - before);
    dif = select(same_side, loss * select(up, x - start, start - x), dif);
    cost_sum += dif;
    d1_sum += v * select(inside, D * x, select(up, loss, -loss));
    d2_sum += select(inside, D * v * v, zero);
  }
  for (int k = 0; k < line.one_sided; ++k, row = row + kRowValues) {
    const V start = row[kRowNow], v = row[kRowRate], D = row[kRowWeight], x = fma(alpha, v, start);
    const M active = x < zero;
    const V y = select(active, x, zero), y0 = min(start, zero);
    // Where both count, x - start as it is before rounding.
    const V moved = select(active & (start < zero), alpha * v, y - y0);
    cost_sum = fma(half * D * moved, y + y0, cost_sum);
    d1_sum = fma(D * y, v, d1_sum);
    d2_sum = fma(select(active, D, zero) * v, v, d2_sum);
  }
  auto cone = c.cones;
  for (int k = 0; k < line.cones; ++k) {
    add_cone_along<L>(cone, alpha, cost_sum, d1_sum, d2_sum);
    cone = cone + kConeValues;
  }
  cost = cost_sum, d1 = d1_sum, d2 = d2_sum;
}

/// Lanes in which a piecewise quadratic row stays on its piece from x to x_new.
template <class L>
COHORT_LANE typename L::M same_piece(const Group& g, typename L::V D, typename L::V x, typename L::V x_new) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f);
  const auto equal = [](M a, M b) -> M { return (a & b) | (flip(a) & flip(b)); };
  if (g.kind == kGroupEquality) return zero == zero;
  if (g.kind == kGroupFriction) {
    M high, low, high0, low0;
    friction_ends<L>(g, -(D * x), high0, low0);
    friction_ends<L>(g, -(D * x_new), high, low);
    return (equal(high, high0) & equal(low, low0)) | (D <= zero);
  }
  return equal(x < zero, x_new < zero) | (D <= zero);
}

/// The same for an elliptic cone; in the middle zone the cost is not quadratic.
template <class L>
COHORT_LANE typename L::M same_zone(const Group& g, typename L::Ptr piece, typename L::V zone, const typename L::V* x) {
  using V = typename L::V;
  const V zero(0.0f), mu = mu_of<L>(g, piece), D = piece[g.layout.weight];
  V U[kMaxDim];
  const ConeZone<L> after(mu, mu * x[0], sqrt(tangent_in_cone<L>(g, piece, x, U)), D);
  return ((zone == zero) & after.top) | ((zone < zero) & after.bottom) | (D <= zero);
}

/// Moves the groups' rows by `step` along the search, in the lanes of `live`, which are among the line's; returns those
/// in which none changed its piece.
template <class L>
COHORT_KERNEL typename L::M move_along(Constraints<L>& c, const SearchLine<L>& line, typename L::M live,
                                       typename L::V step) {
  using V = typename L::V;
  auto same = live;
  auto row = c.rows, cone = c.cones;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & line.lanes) == 0) continue;
    const auto piece = c.pool + g.at;
    const auto jar = piece + g.layout.jar;
    if (g.kind == kGroupElliptic) {
      V x[kMaxDim];
      for (int e = 0; e < g.dim; ++e) x[e] = fma(step, piece[g.layout.jv + e], jar[e]);
      same = same & same_zone<L>(g, piece, cone[kConeZone], x);
      for (int e = 0; e < g.dim; ++e) jar[e] = select(live, x[e], jar[e]);
      cone = cone + kConeValues;
      continue;
    }
    for (int e = 0; e < g.edges; ++e) {
      const V x = row[kRowNow], moved = fma(step, row[kRowRate], x);
      same = same & same_piece<L>(g, row[kRowWeight], x, moved);
      jar[e] = select(live, moved, x);
      row = row + (g.kind == kGroupFriction ? kFrictionRowValues : kRowValues);
    }
  }
  return same;
}

}  // namespace cohort::sim
