/// Factors and products of symmetric matrices that are stored as lower triangles with a pattern of columns per row: H =
/// L' D L with L unit lower triangular, rows eliminated from the last (Featherstone 2008, section 6.5). A pattern may
/// hold more than the matrix needs: entries that are zero contribute zeros and leave the others' bits alone.
#pragma once
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// Columns of row i: cols[start[i]] .. cols[start[i + 1] - 1], rising, the last one i itself.
template <class L>
struct Pattern {
  IndexPtr<L> cols, start;
};

/// True when row i has the columns of row i - 1, and itself: then both are taken together, which halves the reading and
/// writing of what they change. Every entry still gets the same sums in the same order.
template <class L>
COHORT_LANE bool extends_row_before(Pattern<L> p, int i) {
  return i > 0 && p.start[i + 1] - p.start[i] == p.start[i] - p.start[i - 1] + 1 && p.cols[p.start[i + 1] - 2] == i - 1;
}

/// A number that is known to the compiler.
template <int kValue>
struct Constant {
  COHORT_LANE constexpr operator int() const { return kValue; }
};
/// f(Constant<kFirst>), ..., f(Constant<kEnd - 1>), and f(Constant<kEnd - 1>), ..., f(Constant<kFirst>): loops that are
/// unrolled for certain, so that the arrays which they index lie in registers.
template <int kFirst, int kEnd, class F>
COHORT_LANE void rising(const F& f) {
  if constexpr (kFirst < kEnd) {
    f(Constant<kFirst>{});
    rising<kFirst + 1, kEnd>(f);
  }
}
template <int kEnd, int kFirst, class F>
COHORT_LANE void falling(const F& f) {
  if constexpr (kFirst < kEnd) {
    f(Constant<kEnd - 1>{});
    falling<kEnd - 1, kFirst>(f);
  }
}

/// Rows of a free body, each of which extends the one before it: they are taken together, with their own entries in
/// registers and every column that they share read once. The sums stay what they are row by row.
inline constexpr int kRun = 6;

/// True when row i is the last of a run that lies in the rows from `begin` on. Row i has the columns before it and
/// itself, and hands what else it has to each of those rows (a factor's pattern is closed): if the first of them has no
/// more than that, none has.
template <class L>
COHORT_LANE bool ends_run(Pattern<L> p, int i, int begin) {
  constexpr int kBack = kRun - 1;
  if (i - begin < kBack) return false;
  const int end = p.start[i + 1], first = i - kBack;
  return end - p.start[i] == p.start[first + 1] - p.start[first] + kBack && p.cols[end - kRun] == first;
}

/// The rows of a run.
template <class L>
struct Run {
  IndexPtr<L> cols;  ///< that all of them have, in front of their own
  int count;
  typename L::Ptr row[kRun];

  COHORT_LANE Run(int first, Pattern<L> p, typename L::Ptr a) {
    cols = p.cols + p.start[first];
    count = p.start[first + 1] - 1 - p.start[first];
    row[0] = a + triangle(first, 0);
    rising<1, kRun>([&](auto r) { row[r] = row[r - 1] + (first + r); });
  }
};

/// The step of factor_with for the run of rows that begins at `first`.
template <class L, class Inverse>
COHORT_LANE void factor_run(int first, Pattern<L> p, typename L::Ptr a, Inverse inverse_of) {
  using V = typename L::V;
  const Run<L> run(first, p, a);
  // The run's own entries; what the rows above take of a row, by its pivot.
  V own[kRun][kRun], share[kRun][kRun], inverse[kRun];
  rising<0, kRun>([&](auto r) { rising<0, r + 1>([&](auto q) { own[r][q] = run.row[r][first + q]; }); });
  falling<kRun, 0>([&](auto r) {
    inverse[r] = inverse_of(first + r, own[r][r]);
    run.row[r][first + r] = inverse[r];
    falling<r, 0>([&](auto q) {
      share[r][q] = own[r][q] * inverse[r];
      rising<0, q + 1>([&](auto e) { own[q][e] = fma(-share[r][q], own[r][e], own[q][e]); });
      run.row[r][first + q] = share[r][q];
    });
  });
  for (int k = 0; k < run.count; ++k) {
    const int j = run.cols[k];
    V x[kRun];
    rising<0, kRun>([&](auto r) { x[r] = run.row[r][j]; });
    falling<kRun, 1>([&](auto r) { falling<r, 0>([&](auto q) { x[q] = fma(-share[r][q], x[r], x[q]); }); });
    rising<0, kRun - 1>([&](auto r) { run.row[r][j] = x[r]; });
  }
  // The run's share of the others, two rows of those at a time.
  int k = run.count - 1;
  for (; k >= 1; k -= 2) {
    const int j1 = run.cols[k], j2 = run.cols[k - 1];
    const auto other1 = a + triangle(j1, 0), other2 = a + triangle(j2, 0);
    V s1[kRun], s2[kRun], last = other1[j1];
    falling<kRun, 0>([&](auto r) {
      const V x = run.row[r][j1];
      s1[r] = x * inverse[r], s2[r] = run.row[r][j2] * inverse[r];
      last = fma(-s1[r], x, last);
    });
    other1[j1] = last;
    for (int e = 0; e < k; ++e) {
      const int at = run.cols[e];
      V x1 = other1[at], x2 = other2[at];
      falling<kRun, 0>([&](auto r) {
        const V x = run.row[r][at];
        x1 = fma(-s1[r], x, x1), x2 = fma(-s2[r], x, x2);
      });
      other1[at] = x1, other2[at] = x2;
    }
    rising<0, kRun>([&](auto r) { run.row[r][j1] = s1[r], run.row[r][j2] = s2[r]; });
  }
  if (k == 0) {
    const int j = run.cols[0];
    const auto other = a + triangle(j, 0);
    V last = other[j];
    falling<kRun, 0>([&](auto r) {
      const V x = run.row[r][j], s = x * inverse[r];
      last = fma(-s, x, last);
      run.row[r][j] = s;
    });
    other[j] = last;
  }
}

/// In place; the diagonal becomes its inverse: inverse(i, pivot). Of the rows from `begin` on, which have no columns
/// before it, to n.
template <class L, class Inverse>
COHORT_LANE void factor_with(int begin, int n, Pattern<L> p, typename L::Ptr a, Inverse inverse_of) {
  using V = typename L::V;
  for (int i = n - 1; i >= begin; --i) {
    if (ends_run(p, i, begin)) {
      i -= kRun - 1;
      factor_run<L>(i, p, a, inverse_of);
      continue;
    }
    const auto row = a + triangle(i, 0);
    const int first = p.start[i], last = p.start[i + 1] - 1;
    const IndexPtr<L> cols = p.cols + first;
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
COHORT_KERNEL void factor_in_place(int n, Pattern<L> p, typename L::Ptr a, int begin = 0) {
  factor_with<L>(begin, n, p, a, [](int, typename L::V pivot) { return typename L::V(1.0f) / pivot; });
}

/// The same for a = M + J' D J, where `mass` is M's factor. No pivot is less than M's; where rounding says so, because
/// the rows are stiffer by far than what they move, M's is taken: the matrix stays positive definite, and what it gives
/// is a direction of descent.
template <class L>
COHORT_KERNEL void factor_hessian(int n, Pattern<L> p, typename L::Ptr a, typename L::Ptr mass) {
  using V = typename L::V;
  factor_with<L>(0, n, p, a, [&](int i, V pivot) {
    const V most = mass[triangle(i, i)];
    return select(pivot * most > V(0.5f), V(1.0f) / pivot, most);
  });
}

/// Both halves of solve_in_place for the run of rows that begins at `first`.
template <class L>
COHORT_LANE void solve_run_back(int first, Pattern<L> p, typename L::Ptr a, typename L::Ptr x) {
  using V = typename L::V;
  const Run<L> run(first, p, a);
  V own[kRun];
  rising<0, kRun>([&](auto r) { own[r] = x[first + r]; });
  falling<kRun, 0>([&](auto r) {
    falling<r, 0>([&](auto q) { own[q] = fma(-run.row[r][first + q], own[r], own[q]); });
    x[first + r] = own[r] * run.row[r][first + r];
  });
  for (int k = 0; k < run.count; ++k) {
    const int j = run.cols[k];
    V sum = x[j];
    falling<kRun, 0>([&](auto r) { sum = fma(-run.row[r][j], own[r], sum); });
    x[j] = sum;
  }
}
template <class L>
COHORT_LANE void solve_run_on(int first, Pattern<L> p, typename L::Ptr a, typename L::Ptr x) {
  using V = typename L::V;
  const Run<L> run(first, p, a);
  V own[kRun];
  rising<0, kRun>([&](auto r) { own[r] = x[first + r]; });
  for (int k = 0; k < run.count; ++k) {
    const int j = run.cols[k];
    const V known = x[j];
    rising<0, kRun>([&](auto r) { own[r] = fma(-run.row[r][j], known, own[r]); });
  }
  rising<0, kRun>([&](auto r) {
    rising<0, r>([&](auto q) { own[r] = fma(-run.row[r][first + q], own[q], own[r]); });
    x[first + r] = own[r];
  });
}

/// x := H^-1 x; of the rows that were factored.
template <class L>
COHORT_KERNEL void solve_in_place(int n, Pattern<L> p, typename L::Ptr a, typename L::Ptr x, int begin = 0) {
  using V = typename L::V;
  for (int i = n - 1; i >= begin; --i) {
    if (ends_run(p, i, begin)) {
      i -= kRun - 1;
      solve_run_back<L>(i, p, a, x);
      continue;
    }
    const auto row = a + triangle(i, 0);
    const IndexPtr<L> cols = p.cols + p.start[i];
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
    if (i + kRun <= n && ends_run(p, i + kRun - 1, i)) {
      solve_run_on<L>(i, p, a, x);
      i += kRun - 1;
      continue;
    }
    const auto row = a + triangle(i, 0);
    const IndexPtr<L> cols = p.cols + p.start[i];
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

/// The step of multiply_symmetric for the run of rows that begins at `first`.
template <class L>
COHORT_LANE void multiply_run(int first, Pattern<L> p, typename L::Ptr a, typename L::Ptr x, typename L::Ptr y) {
  using V = typename L::V;
  const Run<L> run(first, p, a);
  V own[kRun], sum[kRun];
  rising<0, kRun>([&](auto r) { own[r] = x[first + r], sum[r] = run.row[r][first + r] * own[r]; });
  for (int k = 0; k < run.count; ++k) {
    const int j = run.cols[k];
    const V xj = x[j];
    V other = y[j];
    rising<0, kRun>([&](auto r) {
      const V entry = run.row[r][j];
      sum[r] = fma(entry, xj, sum[r]);
      other = fma(entry, own[r], other);
    });
    y[j] = other;
  }
  rising<1, kRun>([&](auto r) {
    rising<0, r>([&](auto q) {
      const V entry = run.row[r][first + q];
      sum[r] = fma(entry, own[q], sum[r]);
      sum[q] = fma(entry, own[r], sum[q]);
    });
  });
  rising<0, kRun>([&](auto r) { y[first + r] = sum[r]; });
}

/// y := H x for an unfactored matrix; y and x do not overlap.
template <class L>
COHORT_KERNEL void multiply_symmetric(int n, Pattern<L> p, typename L::Ptr a, typename L::Ptr x, typename L::Ptr y) {
  using V = typename L::V;
  for (int i = 0; i < n; ++i) {
    if (i + kRun <= n && ends_run(p, i + kRun - 1, i)) {
      multiply_run<L>(i, p, a, x, y);
      i += kRun - 1;
      continue;
    }
    const auto row = a + triangle(i, 0);
    const IndexPtr<L> cols = p.cols + p.start[i];
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
COHORT_LANE void copy_matrix(int n, Pattern<L> p, typename L::Ptr from, typename L::Ptr to) {
  for (int i = 0; i < n; ++i) {
    const auto row = from + triangle(i, 0), to_row = to + triangle(i, 0);
    const IndexPtr<L> cols = p.cols + p.start[i];
    const int count = p.start[i + 1] - p.start[i];
    int k = 0;
    for (; k + 2 <= count; k += 2) {
      const int j1 = cols[k], j2 = cols[k + 1];
      const typename L::V x1 = row[j1], x2 = row[j2];
      to_row[j1] = x1, to_row[j2] = x2;
    }
    if (k < count) to_row[cols[k]] = row[cols[k]];
  }
}

}  // namespace cohort::sim
