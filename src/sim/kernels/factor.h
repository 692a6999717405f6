/// Factors and products of symmetric matrices that are stored as lower triangles with a pattern of columns per row: H =
/// L' D L with L unit lower triangular, rows eliminated from the last (Featherstone 2008, section 6.5). A pattern may
/// hold more than the matrix needs: entries that are zero contribute zeros and leave the others' bits alone.
#pragma once
#include "sim/kernels/workspace.h"

namespace cohort::sim {

/// Columns of row i: cols[start[i]] .. cols[start[i + 1] - 1], rising, the last one i itself.
struct Pattern {
  const int* cols;
  const int* start;
};

/// True when row i has the columns of row i - 1, and itself: then both are taken together, which halves the reading and
/// writing of what they change. Every entry still gets the same sums in the same order.
COHORT_LANE bool extends_row_before(Pattern p, int i) {
  return i > 0 && p.start[i + 1] - p.start[i] == p.start[i] - p.start[i - 1] + 1 && p.cols[p.start[i + 1] - 2] == i - 1;
}

/// In place; the diagonal becomes its inverse: inverse(i, pivot). Of the rows from `begin` on, which have no columns
/// before it, to n.
template <class L, class Inverse>
COHORT_LANE void factor_with(int begin, int n, Pattern p, typename L::Ptr a, Inverse inverse_of) {
  using V = typename L::V;
  for (int i = n - 1; i >= begin; --i) {
    const auto row = a + triangle(i, 0);
    const int first = p.start[i], last = p.start[i + 1] - 1;
    const int* cols = p.cols + first;
    const int count = last - first;
    const V inverse = inverse_of(i, row[i]);
    row[i] = inverse;
    if (!extends_row_before(p, i)) {
      for (int k = count - 1; k >= 0; --k) {
        const int j = cols[k];
        const V scaled = row[j] * inverse;
        const auto other = a + triangle(j, 0);
        for (int e = 0; e <= k; ++e) other[cols[e]] = fma(-scaled, row[cols[e]], other[cols[e]]);
        row[j] = scaled;
      }
      continue;
    }
    // Row i's share of row i - 1, then both rows' of the others, two of those at a time.
    const auto before = a + triangle(i - 1, 0);
    const V share = row[i - 1] * inverse;
    for (int e = 0; e < count; ++e) before[cols[e]] = fma(-share, row[cols[e]], before[cols[e]]);
    row[i - 1] = share;
    const V inverse_before = inverse_of(i - 1, before[i - 1]);
    before[i - 1] = inverse_before;
    int k = count - 2;
    for (; k >= 1; k -= 2) {
      const int j1 = cols[k], j2 = cols[k - 1];
      const V s1 = row[j1] * inverse, b1 = before[j1] * inverse_before;
      const V s2 = row[j2] * inverse, b2 = before[j2] * inverse_before;
      const auto other1 = a + triangle(j1, 0), other2 = a + triangle(j2, 0);
      for (int e = 0; e < k; ++e) {
        const int at = cols[e];
        const V r = row[at], b = before[at];
        other1[at] = fma(-b1, b, fma(-s1, r, other1[at]));
        other2[at] = fma(-b2, b, fma(-s2, r, other2[at]));
      }
      other1[j1] = fma(-b1, before[j1], fma(-s1, row[j1], other1[j1]));
      row[j1] = s1, row[j2] = s2, before[j1] = b1, before[j2] = b2;
    }
    if (k == 0) {
      const int j = cols[0];
      const V s = row[j] * inverse, b = before[j] * inverse_before;
      const auto other = a + triangle(j, 0);
      other[j] = fma(-b, before[j], fma(-s, row[j], other[j]));
      row[j] = s, before[j] = b;
    }
    --i;
  }
}

template <class L>
COHORT_KERNEL void factor_in_place(int n, Pattern p, typename L::Ptr a, int begin = 0) {
  factor_with<L>(begin, n, p, a, [](int, typename L::V pivot) { return typename L::V(1.0f) / pivot; });
}

/// The same for a = M + J' D J, where `mass` is M's factor. No pivot is less than M's; where rounding says so, because
/// the rows are stiffer by far than what they move, M's is taken: the matrix stays positive definite, and what it gives
/// is a direction of descent.
template <class L>
COHORT_KERNEL void factor_hessian(int n, Pattern p, typename L::Ptr a, typename L::Ptr mass) {
  using V = typename L::V;
  factor_with<L>(0, n, p, a, [&](int i, V pivot) {
    const V most = mass[triangle(i, i)];
    return select(pivot * most > V(0.5f), V(1.0f) / pivot, most);
  });
}

/// x := H^-1 x; of the rows that were factored.
template <class L>
COHORT_KERNEL void solve_in_place(int n, Pattern p, typename L::Ptr a, typename L::Ptr x, int begin = 0) {
  using V = typename L::V;
  for (int i = n - 1; i >= begin; --i) {
    const auto row = a + triangle(i, 0);
    const int* cols = p.cols + p.start[i];
    const int count = p.start[i + 1] - 1 - p.start[i];
    const V xi = x[i];
    x[i] = xi * row[i];
    if (!extends_row_before(p, i)) {
      for (int k = 0; k < count; ++k) x[cols[k]] = fma(-row[cols[k]], xi, x[cols[k]]);
      continue;
    }
    const auto before = a + triangle(i - 1, 0);
    const V xb = fma(-row[i - 1], xi, x[i - 1]);
    x[i - 1] = xb * before[i - 1];
    for (int k = 0; k < count - 1; ++k) {
      const int at = cols[k];
      x[at] = fma(-before[at], xb, fma(-row[at], xi, x[at]));
    }
    --i;
  }
  for (int i = begin; i < n; ++i) {
    const auto row = a + triangle(i, 0);
    const int* cols = p.cols + p.start[i];
    const int count = p.start[i + 1] - 1 - p.start[i];
    V xi = x[i];
    if (i + 1 == n || !extends_row_before(p, i + 1)) {
      for (int k = 0; k < count; ++k) xi = fma(-row[cols[k]], x[cols[k]], xi);
      x[i] = xi;
      continue;
    }
    const auto after = a + triangle(i + 1, 0);
    V xa = x[i + 1];
    for (int k = 0; k < count; ++k) {
      const V known = x[cols[k]];
      xi = fma(-row[cols[k]], known, xi);
      xa = fma(-after[cols[k]], known, xa);
    }
    x[i] = xi;
    x[i + 1] = fma(-after[i], xi, xa);
    ++i;
  }
}

/// y := H x for an unfactored matrix; y and x do not overlap.
template <class L>
COHORT_KERNEL void multiply_symmetric(int n, Pattern p, typename L::Ptr a, typename L::Ptr x, typename L::Ptr y) {
  using V = typename L::V;
  for (int i = 0; i < n; ++i) {
    const auto row = a + triangle(i, 0);
    const int* cols = p.cols + p.start[i];
    const int count = p.start[i + 1] - 1 - p.start[i];
    const V xi = x[i];
    V s = row[i] * xi;
    if (i + 1 == n || !extends_row_before(p, i + 1)) {
      for (int k = 0; k < count; ++k) {
        const int j = cols[k];
        const V entry = row[j];
        s = fma(entry, x[j], s);
        y[j] = fma(entry, xi, y[j]);
      }
      y[i] = s;
      continue;
    }
    const auto after = a + triangle(i + 1, 0);
    const V xa = x[i + 1], between = after[i];
    V sa = after[i + 1] * xa;
    for (int k = 0; k < count; ++k) {
      const int j = cols[k];
      const V entry = row[j], entry_after = after[j], xj = x[j];
      s = fma(entry, xj, s);
      sa = fma(entry_after, xj, sa);
      y[j] = fma(entry_after, xa, fma(entry, xi, y[j]));
    }
    y[i] = fma(between, xa, s);
    y[i + 1] = fma(between, xi, sa);
    ++i;
  }
}

template <class L>
COHORT_LANE void copy_matrix(int n, Pattern p, typename L::Ptr from, typename L::Ptr to) {
  for (int i = 0; i < n; ++i) {
    for (int k = p.start[i]; k < p.start[i + 1]; ++k) to[triangle(i, p.cols[k])] = from[triangle(i, p.cols[k])];
  }
}

}  // namespace cohort::sim
