/// The line search. It looks at the cost along one direction again and again: what it reads of the groups is put into
/// memory without gaps for it, and what does not change along the direction is computed once.
#pragma once
#include "sim/kernels/solve/hessian.h"

namespace cohort::sim {

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
  int equalities = 0, frictions = 0, one_sided = 0, cones = 0;  ///< rows; cones
  /// First and second derivative at 0: of the inertia's part and the equalities, which are quadratic all along; of the
  /// others.
  typename L::V slope, curvature, slope_now, curvature_now;
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

/// Where a cone of c.cones is at `alpha`.
template <class L>
struct ConeAlong {
  using V = typename L::V;
  V mu, N, T, UV, moved;  ///< UV: product of the tangential part there and its rate; moved: T^2 above that at 0
  typename L::M top, middle;
  COHORT_LANE ConeAlong(typename L::Ptr cone, V alpha) {
    const V zero(0.0f), before = cone[kConeUV];
    mu = cone[kConeMu];
    UV = fma(alpha, V(cone[kConeVV]), before);
    moved = alpha * (UV + before);
    T = sqrt(max(cone[kConeUU] + moved, zero));
    N = fma(alpha, V(cone[kConeV0]), cone[kConeU0]);
    top = N >= mu * T;
    middle = flip(top | (fma(mu, N, T) <= zero));
  }
};

/// slopes_along for one cone.
template <class L>
COHORT_LANE void add_cone_slope(typename L::Ptr cone, typename L::V alpha, typename L::V& d1, typename L::V& d2) {
  using V = typename L::V;
  const V zero(0.0f);
  const ConeAlong<L> at(cone, alpha);
  const V quad2 = cone[kConeQuad2];
  V slope = select(at.top, zero, fma(alpha, quad2, cone[kConeQuad1])), curvature = select(at.top, zero, quad2);
  if (any(at.middle)) {
    const V Dm = cone[kConeWeight], inverse = V(1.0f) / max(at.T, V(1e-12f)), r = fma(-at.mu, at.T, at.N);
    const V T1 = at.UV * inverse, T2 = fma(-T1, T1, cone[kConeVV]) * inverse;
    const V rate = fma(-at.mu, T1, cone[kConeV0]), push = Dm * r;
    slope = select(at.middle, push * rate, slope);
    curvature = select(at.middle, fma(Dm * rate, rate, -(push * (at.mu * T2))), curvature);
  }
  d1 += slope;
  d2 += curvature;
}

/// What a row adds to the derivatives: its force and its stiffness times its rate, and its rate.
template <class V>
struct RowSlope {
  V force, stiff, rate;
  COHORT_LANE void add_to(V& d1, V& d2) const { d1 = fma(force, rate, d1), d2 = fma(stiff, rate, d2); }
};
/// Of a friction's row at x, whose rate is v.
template <class L>
COHORT_LANE RowSlope<typename L::V> friction_slope(typename L::Ptr row, typename L::V x) {
  using V = typename L::V;
  const V zero(0.0f), v = row[kRowRate], D = row[kRowWeight], loss = row[kRowLoss];
  const auto inside = abs(x) < row[kRowBound];
  return {select(inside, D * x, select(x > zero, loss, -loss)), select(inside, D, zero) * v, v};
}
/// Of a row that counts below 0, at x; v: its rate, D: its weight.
template <class V>
COHORT_LANE RowSlope<V> one_sided_slope(V x, V v, V D) {
  const V zero(0.0f);
  return {D * min(x, zero), select(x < zero, D, zero) * v, v};
}

/// Where a group's rows lie in c.rows and its cone in c.cones, of a search over the groups that weigh in `lanes`: behind
/// those of the groups before it. For a team; others count on the way.
struct LinePlace {
  int row = 0, cone = 0;
};
COHORT_LANE int row_values(const Group& g) {
  return g.kind == kGroupFriction ? kFrictionRowValues : kRowValues;
}
template <class L>
COHORT_LANE LinePlace line_place(const Constraints<L>& c, unsigned lanes, int group) {
  LinePlace at;
  for (int k = 0; k < group; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & lanes) == 0) continue;
    if (g.kind == kGroupElliptic) {
      at.cone += kConeValues;
    } else {
      at.row += g.edges * row_values(g);
    }
  }
  return at;
}

/// The derivatives at 0 that begin_line sums: of equalities; of the others.
template <class L>
struct LineSums {
  using V = typename L::V;
  V slope, curvature, slope_now, curvature_now;
  COHORT_LANE void equality(V now, V rate, V D) {
    slope = fma(D * now, rate, slope), curvature = fma(D * rate, rate, curvature);
  }
  COHORT_LANE void friction(typename L::Ptr row) {
    friction_slope<L>(row, V(row[kRowNow])).add_to(slope_now, curvature_now);
  }
  COHORT_LANE void one_sided(V now, V rate, V D) { one_sided_slope(now, rate, D).add_to(slope_now, curvature_now); }
  COHORT_LANE void cone(typename L::Ptr at) { add_cone_slope<L>(at, V(0.0f), slope_now, curvature_now); }
};
/// Sums nothing.
template <class L>
struct NoSums {
  using V = typename L::V;
  COHORT_LANE void equality(V, V, V) {}
  COHORT_LANE void friction(typename L::Ptr) {}
  COHORT_LANE void one_sided(V, V, V) {}
  COHORT_LANE void cone(typename L::Ptr) {}
};

/// A group's rows along `search` to `row`, or its cone to `cone`, and to the sums.
template <class L, class Sums>
COHORT_LANE void put_group(const ModelView& m, const Group& g, typename L::Ptr piece, typename L::Ptr search,
                           typename L::Ptr row, typename L::Ptr cone, Sums& sums) {
  using V = typename L::V;
  const auto jar = piece + g.layout.jar, weight = piece + g.layout.weight;
  if (g.kind == kGroupElliptic) {
    edges_of<L>(m, g, piece, search, piece + g.layout.jv);
    put_cone<L>(g, piece, cone);
    sums.cone(cone);
    return;
  }
  V rate[kMaxEdges];
  edges_of<L>(m, g, piece, search, rate);
  if (g.kind == kGroupInequality || g.kind == kGroupPyramid) {
    const V D = weight[0];
    for (int e = 0; e < g.edges; ++e, row = row + kRowValues) {
      const V now = jar[e];
      row[kRowNow] = now, row[kRowRate] = rate[e], row[kRowWeight] = D;
      sums.one_sided(now, rate[e], D);
    }
  } else if (g.kind == kGroupEquality) {
    for (int e = 0; e < g.edges; ++e, row = row + kRowValues) {
      const V now = jar[e], D = weight[e], v = rate[e];
      row[kRowNow] = now, row[kRowRate] = v, row[kRowWeight] = D;
      sums.equality(now, v, D);
    }
  } else {
    const V loss = loss_of<L>(g, piece), D = weight[0];
    row[kRowNow] = jar[0], row[kRowRate] = rate[0], row[kRowWeight] = D;
    row[kRowBound] = loss / select(D > V(0.0f), D, V(1.0f));
    row[kRowLoss] = loss;
    sums.friction(row);
  }
}

/// The sums of a group whose rows, or cone, are there.
template <class L>
COHORT_LANE void sum_group(const Group& g, typename L::Ptr row, typename L::Ptr cone, LineSums<L>& sums) {
  if (g.kind == kGroupElliptic) return sums.cone(cone);
  for (int e = 0; e < g.edges; ++e, row = row + row_values(g)) {
    if (g.kind == kGroupFriction) {
      sums.friction(row);
    } else if (g.kind == kGroupEquality) {
      sums.equality(row[kRowNow], row[kRowRate], row[kRowWeight]);
    } else {
      sums.one_sided(row[kRowNow], row[kRowRate], row[kRowWeight]);
    }
  }
}

/// Lays out the search along `search` from piece[jar], for groups that weigh in a lane of `lanes`. slope, curvature:
/// those of the inertia's part at 0.
/// Reads the groups; writes c.rows, c.cones.
template <class L>
COHORT_KERNEL SearchLine<L> begin_line(const ModelView& m, Constraints<L>& c, typename L::Ptr search, unsigned lanes,
                                       typename L::V slope, typename L::V curvature) {
  using V = typename L::V;
  SearchLine<L> line;
  line.lanes = lanes;
  LineSums<L> sums{slope, curvature, V(0.0f), V(0.0f)};
  if constexpr (kIsTeam<L>) {
    // The sums, whose order is that of the groups, when all rows are there.
    each<L>(c.count, [&](int k) {
      const Group& g = c.group[k];
      if ((g.lanes & lanes) == 0) return;
      const LinePlace at = line_place<L>(c, lanes, k);
      NoSums<L> none;
      put_group<L>(m, g, c.pool + g.at, search, c.rows + at.row, c.cones + at.cone, none);
    });
  }
  auto row = c.rows, cone = c.cones;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & lanes) == 0) continue;
    if constexpr (kIsTeam<L>) {
      sum_group<L>(g, row, cone, sums);
    } else {
      put_group<L>(m, g, c.pool + g.at, search, row, cone, sums);
    }
    if (g.kind == kGroupElliptic) {
      cone = cone + kConeValues, ++line.cones;
      continue;
    }
    row = row + g.edges * row_values(g);
    if (g.kind == kGroupEquality) {
      line.equalities += g.edges;
    } else if (g.kind == kGroupFriction) {
      line.frictions += g.edges;
    } else {
      line.one_sided += g.edges;
    }
  }
  line.slope = sums.slope, line.curvature = sums.curvature;
  line.slope_now = sums.slope_now, line.curvature_now = sums.curvature_now;
  return line;
}

/// First and second derivative of the cost at `alpha`.
/// Reads c.rows, c.cones.
template <class L>
COHORT_KERNEL void slopes_along(const Constraints<L>& c, const SearchLine<L>& line, typename L::V alpha,
                                typename L::V& d1, typename L::V& d2) {
  using V = typename L::V;
  V slope(0.0f), curvature(0.0f);
  const auto frictions = c.rows + kRowValues * line.equalities;
  const auto one_sided = frictions + kFrictionRowValues * line.frictions;
  const auto put = [](const RowSlope<V>& s, V* values) {
    values[0] = s.force, values[1] = s.stiff, values[2] = s.rate;
  };
  const auto add = [&](const V* values) { RowSlope<V>{values[0], values[1], values[2]}.add_to(slope, curvature); };
  in_order<L, 3>(
      line.frictions,
      [&](int k, V* values) {
        const auto row = frictions + kFrictionRowValues * k;
        put(friction_slope<L>(row, fma(alpha, V(row[kRowRate]), row[kRowNow])), values);
      },
      add);
  in_order<L, 3>(
      line.one_sided,
      [&](int k, V* values) {
        const auto row = one_sided + kRowValues * k;
        const V v = row[kRowRate];
        put(one_sided_slope(fma(alpha, v, row[kRowNow]), v, V(row[kRowWeight])), values);
      },
      add);
  in_order<L, 2>(
      line.cones,
      [&](int k, V* values) {
        values[0] = values[1] = V(0.0f);
        add_cone_slope<L>(c.cones + kConeValues * k, alpha, values[0], values[1]);
      },
      [&](const V* values) { slope += values[0], curvature += values[1]; });
  d1 = fma(alpha, line.curvature, line.slope) + slope;
  d2 = line.curvature + curvature;
}

/// costs_along for one cone.
template <class L>
COHORT_LANE typename L::V cone_cost_along(typename L::Ptr cone, typename L::V alpha) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f), tiny(1e-12f);
  const ConeAlong<L> at(cone, alpha);
  const V start = cone[kConeCost], change = alpha * fma(alpha * half, V(cone[kConeQuad2]), cone[kConeQuad1]);
  // Where it was below the cone as well, without what was there.
  const V below = select(cone[kConeZone] < zero, change, (cone[kConeQuad0] + change) - start);
  const V T0 = cone[kConeLength], half_Dm = half * cone[kConeWeight];
  const V r = fma(-at.mu, at.T, at.N), r0 = fma(-at.mu, T0, cone[kConeU0]);
  const V dr = fma(alpha, cone[kConeV0], -(at.mu * (at.moved / max(at.T + T0, tiny))));
  const V near = half_Dm * dr * fma(V(2.0f), r0, dr);
  const V middle = select(cone[kConeZone] > zero, near, fma(half_Dm * r, r, -start));
  return select(at.top, -start, select(at.middle, middle, below));
}

/// What the cost at `alpha` is above that at 0.
/// Reads c.rows, c.cones.
template <class L>
COHORT_KERNEL typename L::V cost_along(const Constraints<L>& c, const SearchLine<L>& line, typename L::V alpha) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f), half(0.5f);
  V cost = alpha * fma(half * alpha, line.curvature, line.slope);
  const auto frictions = c.rows + kRowValues * line.equalities;
  const auto one_sided = frictions + kFrictionRowValues * line.frictions;
  const auto add = [&](const V* values) { cost += values[0]; };
  in_order<L, 1>(
      line.frictions,
      [&](int k, V* values) {
        const auto row = frictions + kFrictionRowValues * k;
        const V start = row[kRowNow], v = row[kRowRate], D = row[kRowWeight], bound = row[kRowBound],
                loss = row[kRowLoss];
        const V x = fma(alpha, v, start);
        const M inside = abs(x) < bound, inside0 = abs(start) < bound;
        const V here = select(inside, half * D * x * x, loss * (abs(x) - half * bound));
        const V before = select(inside0, half * D * start * start, loss * (abs(start) - half * bound));
        const M up = x > zero, up0 = start > zero;
        const M same_side = flip(inside) & flip(inside0) & ((up & up0) | (flip(up) & flip(up0)));
        V dif = select(inside & inside0, half * D * (x - start) * (x + start), here - before);
        values[0] = select(same_side, loss * select(up, x - start, start - x), dif);
      },
      add);
  in_order<L, 2>(
      line.one_sided,
      [&](int k, V* values) {
        const auto row = one_sided + kRowValues * k;
        const V start = row[kRowNow], v = row[kRowRate], x = fma(alpha, v, start);
        const V y = min(x, zero), y0 = min(start, zero);
        // Where both count, x - start as it is before rounding.
        const V moved = select((x < zero) & (start < zero), alpha * v, y - y0);
        values[0] = half * row[kRowWeight] * moved, values[1] = y + y0;
      },
      [&](const V* values) { cost = fma(values[0], values[1], cost); });
  in_order<L, 1>(
      line.cones, [&](int k, V* values) { values[0] = cone_cost_along<L>(c.cones + kConeValues * k, alpha); }, add);
  return cost;
}

/// Moves the groups' rows by `step` along the search, in the lanes of `live`, which are among the line's.
/// Reads c.rows; changes piece[jar].
template <class L>
COHORT_KERNEL void move_along(Constraints<L>& c, const SearchLine<L>& line, typename L::M live, typename L::V step) {
  using V = typename L::V;
  auto before = c.rows;  // of a team of one
  each<L>(c.count, [&](int k) {
    const Group& g = c.group[k];
    if ((g.lanes & line.lanes) == 0) return;
    const auto piece = c.pool + g.at;
    const auto jar = piece + g.layout.jar;
    if (g.kind == kGroupElliptic) {
      for (int e = 0; e < g.dim; ++e) jar[e] = select(live, fma(step, piece[g.layout.jv + e], jar[e]), jar[e]);
      return;
    }
    auto row = before;
    if constexpr (kIsTeam<L>) row = c.rows + line_place<L>(c, line.lanes, k).row;
    for (int e = 0; e < g.edges; ++e, row = row + row_values(g)) {
      const V x = row[kRowNow];
      jar[e] = select(live, fma(step, row[kRowRate], x), x);
    }
    if constexpr (!kIsTeam<L>) before = row;
  });
}

}  // namespace cohort::sim
