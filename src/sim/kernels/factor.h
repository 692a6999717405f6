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

/// In place; the diagonal becomes its inverse.
template <class L>
COHORT_KERNEL void factor_in_place(int n, Pattern p, typename L::Ptr a) {
  using V = typename L::V;
  for (int i = n - 1; i >= 0; --i) {
    const auto row = a + triangle(i, 0);
    const int first = p.start[i], last = p.start[i + 1] - 1;
    const V inverse = V(1.0f) / row[i];
    row[i] = inverse;
    for (int k = last - 1; k >= first; --k) {
      const int j = p.cols[k];
      const V scaled = row[j] * inverse;
      const auto other = a + triangle(j, 0);
      for (int e = first; e <= k; ++e) other[p.cols[e]] = fma(-scaled, row[p.cols[e]], other[p.cols[e]]);
      row[j] = scaled;
    }
  }
}

/// x := H^-1 x
template <class L>
COHORT_KERNEL void solve_in_place(int n, Pattern p, typename L::Ptr a, typename L::Ptr x) {
  using V = typename L::V;
  for (int i = n - 1; i >= 0; --i) {
    const auto row = a + triangle(i, 0);
    const V xi = x[i];
    for (int k = p.start[i]; k < p.start[i + 1] - 1; ++k) x[p.cols[k]] = fma(-row[p.cols[k]], xi, x[p.cols[k]]);
    x[i] = xi * row[i];
  }
  for (int i = 0; i < n; ++i) {
    const auto row = a + triangle(i, 0);
    V xi = x[i];
    for (int k = p.start[i]; k < p.start[i + 1] - 1; ++k) xi = fma(-row[p.cols[k]], x[p.cols[k]], xi);
    x[i] = xi;
  }
}

/// y := H x for an unfactored matrix; y and x do not overlap.
template <class L>
COHORT_KERNEL void multiply_symmetric(int n, Pattern p, typename L::Ptr a, typename L::Ptr x, typename L::Ptr y) {
  using V = typename L::V;
  for (int i = 0; i < n; ++i) {
    const auto row = a + triangle(i, 0);
    const V xi = x[i];
    V s = row[i] * xi;
    for (int k = p.start[i]; k < p.start[i + 1] - 1; ++k) {
      const int j = p.cols[k];
      s = fma(row[j], x[j], s);
      y[j] = fma(row[j], xi, y[j]);
    }
    y[i] = s;
  }
}

template <class L>
COHORT_LANE void copy_matrix(int n, Pattern p, typename L::Ptr from, typename L::Ptr to) {
  for (int i = 0; i < n; ++i) {
    for (int k = p.start[i]; k < p.start[i + 1]; ++k) to[triangle(i, p.cols[k])] = from[triangle(i, p.cols[k])];
  }
}

}  // namespace cohort::sim
