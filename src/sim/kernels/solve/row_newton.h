/// Newton's method on the rows of the lanes' islands (row_space.h): Newton's target for the pieces where the rows are,
/// the search from them to it, and the way there. Nothing here knows of dofs: the rows' products stand for them.
#pragma once
#include "sim/kernels/solve/delassus.h"

namespace cohort::sim {

/// Newton's line search ends where the slope has fallen to this share: the step length is then right to about this
/// relative error, and the cost to its square.
inline constexpr float kSlopeTolerance = 1e-2f;

/// A row's force at x.
template <class L>
COHORT_LANE typename L::V row_force(const RowSpace<L>& r, int i, typename L::V x) {
  using V = typename L::V;
  return clip(-(V(r.weight[i]) * x), V(r.low[i]), V(r.high[i]));
}
/// Where it is -D x.
template <class L>
COHORT_LANE typename L::M row_is_quadratic(const RowSpace<L>& r, int i, typename L::V force) {
  return (force > typename L::V(r.low[i])) & (force < typename L::V(r.high[i]));
}

/// Cost of a row at x1 above that at x0; `moved`: x1 - x0 before rounding.
template <class L>
COHORT_LANE typename L::V row_cost_change(const RowSpace<L>& r, int i, typename L::V x0, typename L::V x1,
                                          typename L::V moved) {
  using V = typename L::V;
  const V half(0.5f), D = r.weight[i];
  const V f0 = row_force<L>(r, i, x0), f1 = row_force<L>(r, i, x1);
  const auto in0 = row_is_quadratic<L>(r, i, f0), in1 = row_is_quadratic<L>(r, i, f1);
  const V R = r.compliance[i];
  // Outside it grows with the force that it has reached, from where it meets the parabola.
  const V c0 = select(in0, half * D * x0 * x0, -(f0 * fma(half * f0, R, x0)));
  const V c1 = select(in1, half * D * x1 * x1, -(f1 * fma(half * f1, R, x1)));
  V change = select(in0 & in1, half * D * moved * (x0 + x1), c1 - c0);
  return select(flip(in0) & flip(in1) & (f0 == f1), -(f0 * moved), change);
}

/// y := y + A x for the rows [i, end) of `rows` rows, over the `count` rows `used`; x[a] belongs to used[a].
template <class L>
COHORT_LANE void add_products(int i, int end, int rows, typename L::Ptr delassus, int count, const int* used,
                              typename L::Ptr x, typename L::Ptr y) {
  using V = typename L::V;
  for (; i + 4 <= end; i += 4) {
    V y0 = y[i], y1 = y[i + 1], y2 = y[i + 2], y3 = y[i + 3];
    for (int a = 0; a < count; ++a) {
      const auto row = delassus + (used[a] * rows + i);
      const V xa = x[a];
      y0 = fma(row[0], xa, y0), y1 = fma(row[1], xa, y1), y2 = fma(row[2], xa, y2), y3 = fma(row[3], xa, y3);
    }
    y[i] = y0, y[i + 1] = y1, y[i + 2] = y2, y[i + 3] = y3;
  }
  for (; i < end; ++i) {
    V sum = y[i];
    for (int a = 0; a < count; ++a) sum = fma(delassus[used[a] * rows + i], x[a], sum);
    y[i] = sum;
  }
}

/// y := y + A x, over the rows of `list`; x[a] belongs to its row a. Of a single block only the first n rows of y.
template <class L>
COHORT_KERNEL void add_list(int n, const RowBlocks& blocks, typename L::Ptr delassus, const RowList& list,
                            typename L::Ptr x, typename L::Ptr y) {
  const int rows = blocks.rows, across = list.begin[blocks.count];
  if (blocks.count == 1 && blocks.across == rows) {
    add_products<L>(0, n, rows, delassus, list.count, list.row, x, y);
    return;
  }
  for (int b = 0; b < blocks.count; ++b) {
    const int from = list.begin[b], row = blocks.block[b].row, end = blocks.block[b].end;
    add_products<L>(row, end, rows, delassus, list.begin[b + 1] - from, list.row + from, x + from, y);
    add_products<L>(row, end, rows, delassus, list.count - across, list.row + across, x + across, y);
  }
  add_products<L>(blocks.across, rows, rows, delassus, list.count, list.row, x, y);
}

/// Eliminates the rows [j, end) from those behind them that they are coupled with: up to `end`, and [across, n). Two
/// columns at a time; every entry gets the sums of one at a time.
template <class L>
COHORT_LANE void eliminate_rows(int j, int end, int across, int n, typename L::Ptr K, typename L::Ptr x) {
  using V = typename L::V;
  V first[kMostRowSpaceRows], second[kMostRowSpaceRows];
  for (; j + 1 < end; j += 2) {
    const auto pivot = K + triangle(j + 1, 0);
    const V inverse1 = V(1.0f) / K[triangle(j, j)], below = pivot[j], between = below * inverse1;
    const V inverse2 = V(1.0f) / fma(-between, below, pivot[j + 1]);
    const V x1 = x[j], x2 = fma(-between, x1, x[j + 1]);
    K[triangle(j, j)] = inverse1;
    pivot[j] = between, pivot[j + 1] = inverse2;
    // kRows rows from i on: what is read of the columns serves them all, and short loops are few.
    const auto update = [&](int i, bool behind, auto rows) {
      constexpr int kRows = decltype(rows)::kDim;
      typename L::Ptr row[kRows];
      V s1[kRows], s2[kRows];
      for (int q = 0; q < kRows; ++q) {
        row[q] = K + triangle(i + q, 0);
        const V a = row[q][j];
        s1[q] = a * inverse1;
        const V b = fma(-s1[q], below, row[q][j + 1]);
        s2[q] = b * inverse2;
        first[i + q] = a, second[i + q] = b;
        row[q][j] = s1[q], row[q][j + 1] = s2[q];
        x[i + q] = fma(-s2[q], x2, fma(-s1[q], x1, x[i + q]));
      }
      const auto subtract = [&](int k, int from) {
        for (int q = from; q < kRows; ++q) {
          row[q][k] = fma(-s2[q], second[k], fma(-s1[q], first[k], row[q][k]));
        }
      };
      for (int k = j + 2; k <= (behind ? end - 1 : i); ++k) subtract(k, 0);
      if (behind) {
        for (int k = across; k <= i; ++k) subtract(k, 0);
      }
      for (int q = 1; q < kRows; ++q) subtract(i + q, q);
    };
    int i = j + 2;
    for (; i + 1 < end; i += 2) update(i, false, Dim<2>{});
    if (i < end) update(i, false, Dim<1>{});
    for (i = across; i < n; ++i) update(i, true, Dim<1>{});
    x[j] = x1 * inverse1, x[j + 1] = x2 * inverse2;
  }
  if (j >= end) return;
  const V inverse = V(1.0f) / K[triangle(j, j)], own = x[j];
  for (int i = across; i < n; ++i) {
    const auto row = K + triangle(i, 0);
    const V a = row[j], s = a * inverse;
    first[i] = a;
    for (int k = across; k <= i; ++k) row[k] = fma(-s, first[k], row[k]);
    row[j] = s;
    x[i] = fma(-s, own, x[i]);
  }
  x[j] = own * inverse;
}

/// x := K^-1 x of the list's rows with K's lower triangle, which is overwritten.
template <class L>
COHORT_KERNEL void solve_rows(const RowBlocks& blocks, const RowList& list, typename L::Ptr K, typename L::Ptr x) {
  using V = typename L::V;
  const int n = list.count, across = list.begin[blocks.count];
  for (int b = 0; b < blocks.count; ++b) eliminate_rows<L>(list.begin[b], list.begin[b + 1], across, n, K, x);
  eliminate_rows<L>(across, n, n, n, K, x);
  const auto substitute = [&](int i, int first) {
    const auto row = K + triangle(i, 0);
    const V known = x[i];
    for (int k = first; k < i; ++k) x[k] = fma(-row[k], known, x[k]);
  };
  for (int i = n - 1; i >= across; --i) substitute(i, 0);
  for (int b = blocks.count - 1; b >= 0; --b) {
    for (int i = list.begin[b + 1] - 1; i > list.begin[b]; --i) substitute(i, list.begin[b]);
  }
}

/// Where the lanes' search is. The acceleration is a0 + rest (a_warm - a0) + M^-1 J' r.force, its rows are r.x.
template <class L>
struct RowSearch {
  typename L::V rest;         ///< share of the warm start that is left: 0 or 1 at first
  typename L::V energy;       ///< RowPart::energy, of the island
  typename L::M live, exact;  ///< lanes that go on; that have reached the minimum of the pieces where their rows are
  RowBlocks blocks;
  int n;  ///< rows that a live lane has
  // Along the search, from 0 to Newton's target at 1: the cost's second derivative without the rows' part and, at 0,
  // with it, which is minus its slope there; lanes none of whose rows changes its piece on the way.
  typename L::V kept, curvature;
  typename L::M same;
};

/// The start: the last acceleration, or the unconstrained one where that costs less. Reads r.start, r.warm, at.energy.
/// Writes r.x, r.force, at.rest.
template <class L>
COHORT_KERNEL void start_rows(const ModelView& m, RowSpace<L>& r, RowSearch<L>& at) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const int rows = at.blocks.rows;
  at.rest = zero;
  if (m.option.warmstart != 0) {
    V change = half * at.energy;
    for (int i = 0; i < rows; ++i) {
      change += row_cost_change<L>(r, i, r.start[i], r.start[i] + r.warm[i], r.warm[i]);
    }
    at.rest = select(change <= zero, V(1.0f), zero);
  }
  for (int i = 0; i < rows; ++i) {
    r.x[i] = fma(at.rest, r.warm[i], r.start[i]);
    r.force[i] = zero;
  }
}

/// Newton's target for the pieces where the rows are: its rows to r.target, and as differences to the present ones to
/// r.along; the differences of its forces to r.search. The forces at the present rows go to r.present.
/// Reads r.start, r.warm, r.weight, r.compliance, r.delassus, r.x, r.force; overwrites r.factor; writes at.kept,
/// at.curvature, at.same.
template <class L>
COHORT_KERNEL void newton_target(RowSpace<L>& r, RowSearch<L>& at) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f), one(1.0f);
  const int n = at.n;
  // Rows whose force is not at its limit in some lane, and rows whose force is at a limit that pushes.
  M quadratic[kMostRowSpaceRows];
  RowList used, pushing;
  const auto goal = r.along;
  for (int i = 0; i < n; ++i) {
    const V f = row_force<L>(r, i, r.x[i]);
    quadratic[i] = row_is_quadratic<L>(r, i, f);
    // Without branches, which would be predicted badly.
    used.row[used.count] = pushing.row[pushing.count] = i;
    used.count += any(quadratic[i] & at.live) ? 1 : 0;
    pushing.count += any(at.live & flip(quadratic[i]) & (f != zero)) ? 1 : 0;
    r.present[i] = f;
    goal[i] = r.start[i];
  }
  used.split(at.blocks);
  if (pushing.count > 0) {
    pushing.split(at.blocks);
    for (int a = 0; a < pushing.count; ++a) {
      const int i = pushing.row[a];
      r.target[a] = select(quadratic[i], zero, r.present[i]);
    }
    add_list<L>(n, at.blocks, r.delassus, pushing, r.target, goal);
  }
  for (int b = 0; b <= at.blocks.count; ++b) {
    const bool across = b == at.blocks.count;
    const int first = across ? 0 : used.begin[b], end = across ? used.count : used.begin[b + 1];
    for (int a = used.begin[b]; a < end; ++a) {
      const int i = used.row[a];
      const auto from = r.delassus + i * at.blocks.rows, to = r.factor + triangle(a, 0);
      for (int k = first; k < a; ++k) {
        const int j = used.row[k];
        to[k] = select(quadratic[i] & quadratic[j], from[j], zero);
      }
      to[a] = select(quadratic[i], from[i] + r.compliance[i], one);
      r.target[a] = select(quadratic[i], -V(goal[i]), zero);
    }
  }
  solve_rows<L>(at.blocks, used, r.factor, r.target);
  add_list<L>(n, at.blocks, r.delassus, used, r.target, goal);
  // To the rows' own places; those of the others are not looked at in a live lane.
  for (int a = used.count - 1; a >= 0; --a) r.target[used.row[a]] = r.target[a];
  V kept = at.rest * at.rest * at.energy, quadratic_part = zero;
  M same = at.live;
  for (int i = 0; i < n; ++i) {
    const V f = r.present[i], x = r.x[i], aim = select(quadratic[i], r.target[i], f);
    // Of rows whose force is the solution, the rounding is that of the force.
    const V reached = select(quadratic[i], -(aim * r.compliance[i]), goal[i]);
    const V change = aim - r.force[i], v = reached - x, force = row_force<L>(r, i, reached);
    const M inside = row_is_quadratic<L>(r, i, force);
    same = same & ((quadratic[i] & inside) | (flip(quadratic[i]) & flip(inside) & (force == f)));
    kept = fma(change, fma(-at.rest, r.warm[i], v), kept);
    quadratic_part = fma(select(quadratic[i], r.weight[i], zero) * v, v, quadratic_part);
    r.target[i] = reached, r.search[i] = change, r.along[i] = v;
  }
  at.kept = max(kept, zero);
  at.curvature = quadratic_part + at.kept;
  at.same = same;
}

/// How far to go along the search. Where no row changes its piece on the way, the target is the minimum. Elsewhere the
/// slope's zero is searched with Newton's method between lo (slope negative) and hi (positive): the slope only rises.
/// Reads r.x, r.along, r.present, r.weight.
template <class L>
COHORT_KERNEL typename L::V search_rows(const ModelView& m, RowSpace<L>& r, const RowSearch<L>& at) {
  using V = typename L::V;
  const V zero(0.0f);
  V alpha(1.0f), lo(0.0f), hi(kNoLimit);
  auto open = at.live & flip(at.same);
  const V enough = at.curvature * V(kSlopeTolerance);
  for (int i = 0; (i == 0 || i < m.option.ls_iterations) && any(open); ++i) {
    V slope = fma(alpha, at.kept, -at.curvature), curvature = at.kept;
    for (int k = 0; k < at.n; ++k) {
      const V v = r.along[k], f = row_force<L>(r, k, fma(alpha, v, r.x[k]));
      slope = fma(r.present[k] - f, v, slope);
      curvature = fma(select(row_is_quadratic<L>(r, k, f), r.weight[k], zero) * v, v, curvature);
    }
    const auto rising = slope > zero;
    hi = select(open & rising, alpha, hi);
    lo = select(open & flip(rising), alpha, lo);
    open = open & flip(abs(slope) < enough);
    const V newton = alpha - slope / max(curvature, V(1e-30f));
    const V fallback = select(hi < V(1e38f), V(0.5f) * (lo + hi), alpha + alpha);
    const V next = select((newton > lo) & (newton < hi), newton, fallback);
    // An interval that single precision cannot divide any more ends where the cost has fallen.
    const auto on = open & (abs(next - alpha) > V(1e-6f) * abs(alpha));
    alpha = select(on, next, select(open, lo, alpha));
    open = on;
  }
  return select(open, lo, alpha);
}

/// Moves the live lanes along the search by `alpha`, decides which go on, and returns those that moved. `enough`: a
/// fall of the cost below it is the last.
/// Reads r.along, r.search, r.present, r.target; changes r.x, r.force, at.rest, at.live, at.exact.
template <class L>
COHORT_KERNEL typename L::M move_rows(RowSpace<L>& r, RowSearch<L>& at, typename L::V alpha, typename L::V enough) {
  using V = typename L::V;
  const typename L::M moved = at.live & (alpha > V(0.0f)), stays = flip(moved);
  at.live = moved & flip(at.same);
  if (any(at.live)) {
    V change = alpha * fma(V(0.5f) * alpha, at.kept, -at.curvature);
    for (int i = 0; i < at.n; ++i) {
      const V v = r.along[i], x = r.x[i];
      change = fma(alpha * r.present[i], v, change) + row_cost_change<L>(r, i, x, fma(alpha, v, x), alpha * v);
    }
    at.live = at.live & (-change >= enough);
  }
  for (int i = 0; i < at.n; ++i) {
    const V x = r.x[i], f = r.force[i];
    r.x[i] = select(stays, x, select(at.same, r.target[i], fma(alpha, r.along[i], x)));
    r.force[i] = select(stays, f, fma(alpha, r.search[i], f));
  }
  at.rest = select(stays, at.rest, at.rest * (V(1.0f) - alpha));
  at.exact = at.exact | (moved & at.same);
  return moved;
}

}  // namespace cohort::sim
