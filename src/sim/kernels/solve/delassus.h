/// From groups of constraint rows to the rows of islands (row_space.h): their Jacobian J, and the Delassus matrix
/// A = J M^-1 J'. Tree by tree, from the first to the last of it, so that a tree's numbers stay in the cache.
#pragma once
#include "sim/kernels/solve/row_islands.h"

namespace cohort::sim {

/// Instead of infinity.
inline constexpr float kNoLimit = 3e38f;

/// Sizes in values per lane; n is ModelView::row_space.
template <class L>
struct RowSpace {
  using Ptr = typename L::Ptr;
  Ptr scaled;  ///< per block (dofs, rows), see RowBlock: J L^-1 D^-1/2 with M = L' D L, whose rows' products are A
  Ptr delassus, factor;  ///< (rows, rows) the Delassus matrix A; (n, n) lower triangle: what Newton's target solves
  Ptr weight, compliance, low, high;  ///< (n) D and 1 / D, limits of the force
  Ptr start, warm;                    ///< (n) b, and J (warm - a0)
  Ptr x, along;                       ///< (n) rows, and their change along the search
  Ptr force, search;                  ///< (n) forces that make the acceleration, and their change along the search
  Ptr present;                        ///< (n) forces at the rows x
  Ptr target;                         ///< (n) x at Newton's target
  Ptr root;                           ///< (nv) D^-1/2
  Ptr difference;                     ///< (nv) a_warm - a0
};

template <class L>
COHORT_LANE void lay_out(const ModelView& m, Arena<L>& c, RowSpace<L>& r) {
  const int n = m.row_space, dofs = n > 0 ? m.nv : 0;
  r.scaled = c.take(n * m.nv);
  r.delassus = c.take(n * n), r.factor = c.take(n * (n + 1) / 2);
  r.weight = c.take(n), r.compliance = c.take(n), r.low = c.take(n), r.high = c.take(n), r.start = c.take(n),
  r.warm = c.take(n);
  r.x = c.take(n), r.along = c.take(n), r.force = c.take(n), r.target = c.take(n), r.search = c.take(n);
  r.present = c.take(n);
  r.root = c.take(dofs), r.difference = c.take(dofs);
}

/// The Jacobian of a group with kDim rows to r.scaled: of one lane, from `row` on; kDim 0: any group. A group may name
/// one dof twice, but a pyramid's does not.
template <class L, int kDim>
COHORT_LANE void number_jacobian(const Group& g, const int* dofs, typename L::Ptr piece, int lane,
                                 const RowBlock& block, int row, typename L::Ptr scaled) {
  const auto entry = [&](int i, int a) { return get_lane(piece[i * g.dofs + a], lane); };
  if (kDim > 1 || g.kind == kGroupPyramid) {
    const int dim = kDim > 1 ? kDim : g.dim;
    float friction[kMaxDim];
    for (int k = 1; k < dim; ++k) friction[k] = g.own ? get_lane(piece[g.own + k - 1], lane) : g.friction[k - 1];
    for (int a = 0; a < g.dofs; ++a) {
      const auto to = scaled + block.entry(dofs[a], row);
      const float normal = entry(0, a);
      for (int k = 1; k < dim; ++k) {
        const float side = entry(k, a) * friction[k];
        set_lane(to[2 * k - 2], lane, normal + side);
        set_lane(to[2 * k - 1], lane, normal - side);
      }
    }
    return;
  }
  const int dim = kDim > 0 ? kDim : g.dim;
  for (int a = 0; a < g.dofs; ++a) {
    const auto to = scaled + block.entry(dofs[a], row);
    for (int i = 0; i < dim; ++i) add_to_lane(to[i], lane, entry(i, a));
  }
}

/// A group's rows of one lane, from `row` on: J to r.scaled, r.weight, r.low, r.high, aref to r.start.
template <class L>
COHORT_LANE void number_group(const ModelView& m, const Constraints<L>& c, RowSpace<L>& r, const RowBlock& block,
                              const Group& g, int lane, int row) {
  const auto piece = c.pool + g.at;
  const int* dofs = m.row_dof + g.first_dof;
  const float loss = g.kind == kGroupFriction && g.own ? get_lane(piece[g.own], lane) : g.loss;
  const float low = g.kind == kGroupEquality ? -kNoLimit : g.kind == kGroupFriction ? -loss : 0.0f;
  const float high = g.kind == kGroupFriction ? loss : kNoLimit;
  const bool alike = weights_of(g.kind, g.dim) == 1;
  if (g.kind == kGroupPyramid && g.dim == 3) {
    number_jacobian<L, 3>(g, dofs, piece, lane, block, row, r.scaled);
  } else if (g.dim == 1) {
    number_jacobian<L, 1>(g, dofs, piece, lane, block, row, r.scaled);
  } else {
    number_jacobian<L, 0>(g, dofs, piece, lane, block, row, r.scaled);
  }
  for (int e = 0; e < g.edges; ++e) {
    set_lane(r.weight[row + e], lane, get_lane(piece[g.layout.weight + (alike ? 0 : e)], lane));
    set_lane(r.start[row + e], lane, get_lane(piece[g.layout.aref + e], lane));
    set_lane(r.low[row + e], lane, low);
    set_lane(r.high[row + e], lane, high);
  }
}

/// The rows of block b as the islands number them; rows that an island does not have weigh nothing.
/// Reads the groups, part, p; writes r.scaled (as J), r.weight, r.compliance, r.low, r.high, r.start (as aref),
/// rows.next.
template <class L>
COHORT_KERNEL void number_rows(const ModelView& m, const Constraints<L>& c, RowSpace<L>& r, const RowPart<L>& part,
                               const RowIslands<L>& p, RowsOfLanes<L>& rows, const RowBlocks& blocks, int b) {
  using V = typename L::V;
  const V zero(0.0f);
  const RowBlock& block = blocks.block[b];
  const auto entries = r.scaled + block.entry(block.dof, block.row);
  for (int i = 0; i < (block.dof_end - block.dof) * block.stride; ++i) entries[i] = zero;
  for (int i = block.row; i < block.end; ++i) r.weight[i] = r.low[i] = r.high[i] = r.start[i] = zero;
  each_group<L>(c, part, p, rows.apart ? b : 0, rows.apart ? b + 1 : p.lists, [&](int t, const Group& g) {
    for (unsigned left = g.lanes & p.having[t]; left != 0; left &= left - 1) {
      const int lane = lowest_bit(left);
      number_group<L>(m, c, r, block, g, lane, rows.next[t][lane]);
      rows.next[t][lane] += g.edges;
    }
  });
  for (int i = block.row; i < block.end; ++i) {
    r.compliance[i] = V(1.0f) / select(V(r.weight[i]) > zero, r.weight[i], V(1.0f));
  }
}

/// r.start := b, r.warm := J `difference`, of kRows rows of a block from the first on; r.scaled = J and r.start = aref.
template <class L, int kRows>
COHORT_LANE void begin_rows(const RowBlock& block, RowSpace<L>& r, int first, typename L::Ptr unconstrained,
                            typename L::Ptr difference) {
  using V = typename L::V;
  V b[kRows], w[kRows];
  for (int s = 0; s < kRows; ++s) b[s] = w[s] = V(0.0f);
  auto column = r.scaled + block.entry(block.dof, first);
  for (int d = block.dof; d < block.dof_end; ++d) {
    const V a = unconstrained[d], change = difference[d];
    for (int s = 0; s < kRows; ++s) {
      const V J = column[s];
      b[s] = fma(J, a, b[s]);
      w[s] = fma(J, change, w[s]);
    }
    column = column + block.stride;
  }
  for (int s = 0; s < kRows; ++s) {
    r.start[first + s] = b[s] - r.start[first + s];
    r.warm[first + s] = w[s];
  }
}

/// r.scaled := J L^-1 D^-1/2 of r.scaled = J, kRows rows of a block from the first on.
template <class L, int kRows>
COHORT_LANE void scale_rows(const ModelView& m, typename L::Ptr factor, const RowBlock& block, RowSpace<L>& r,
                            int first) {
  using V = typename L::V;
  const auto rows = r.scaled + block.entry(block.dof, first);
  for (int j = block.dof_end - 1; j >= block.dof; --j) {
    const auto own = rows + (j - block.dof) * block.stride;
    const int below = m.below_start[j + 1] - m.below_start[j];
    if (below == 0) continue;
    V x[kRows];
    for (int s = 0; s < kRows; ++s) x[s] = own[s];
    // The dofs i below j follow it, so that nothing is multiplied to find where their numbers are.
    auto other = own + block.stride, entry = factor + triangle(j + 1, j);
    for (int i = j + 1; i <= j + below; ++i) {
      const V l = -V(entry[0]);
      for (int s = 0; s < kRows; ++s) x[s] = fma(l, other[s], x[s]);
      other = other + block.stride, entry = entry + (i + 1);
    }
    for (int s = 0; s < kRows; ++s) own[s] = x[s];
  }
  auto column = rows;
  for (int d = block.dof; d < block.dof_end; ++d) {
    const V root = r.root[d];
    for (int s = 0; s < kRows; ++s) column[s] = column[s] * root;
    column = column + block.stride;
  }
}

/// Products of the kRows rows from i on with the kCols rows from j on, over `dofs` dofs; left, right: their columns.
template <class L, int kRows, int kCols>
COHORT_LANE void delassus_entries(int dofs, typename L::Ptr left, int left_stride, typename L::Ptr right,
                                  int right_stride, int i, int j, int n, typename L::Ptr delassus) {
  using V = typename L::V;
  V sum[kRows][kCols];
  for (int a = 0; a < kRows; ++a) {
    for (int b = 0; b < kCols; ++b) sum[a][b] = V(0.0f);
  }
  for (int d = 0; d < dofs; ++d) {
    V y[kCols];
    for (int b = 0; b < kCols; ++b) y[b] = right[b];
    for (int a = 0; a < kRows; ++a) {
      const V x = left[a];
      for (int b = 0; b < kCols; ++b) sum[a][b] = fma(x, y[b], sum[a][b]);
    }
    left = left + left_stride, right = right + right_stride;
  }
  for (int a = 0; a < kRows; ++a) {
    for (int b = 0; b < kCols; ++b) {
      delassus[(i + a) * n + j + b] = delassus[(j + b) * n + i + a] = sum[a][b];
    }
  }
}

/// Products of kRows rows of block `own` from i on with those of `other` up to their own numbers.
template <class L, int kRows>
COHORT_LANE void products_of_some(int n, RowSpace<L>& r, const RowBlock& own, int i, const RowBlock& other) {
  // Of the dofs that both may have.
  const int dof = other.dof, dofs = other.dof_end - other.dof;
  const auto left = r.scaled + own.entry(dof, i);
  const int end = other.end < i + kRows ? other.end : i + kRows;
  int j = other.row;
  for (; j + 3 <= end; j += 3) {
    const auto right = r.scaled + other.entry(dof, j);
    delassus_entries<L, kRows, 3>(dofs, left, own.stride, right, other.stride, i, j, n, r.delassus);
  }
  if (j + 2 <= end) {
    const auto right = r.scaled + other.entry(dof, j);
    delassus_entries<L, kRows, 2>(dofs, left, own.stride, right, other.stride, i, j, n, r.delassus);
  } else if (j < end) {
    const auto right = r.scaled + other.entry(dof, j);
    delassus_entries<L, kRows, 1>(dofs, left, own.stride, right, other.stride, i, j, n, r.delassus);
  }
}

/// Products of the rows of block `own` with those of `other`, the same or a tree's.
template <class L>
COHORT_LANE void products_of_blocks(int n, RowSpace<L>& r, const RowBlock& own, const RowBlock& other) {
  int i = own.row;
  for (; i + 3 <= own.end; i += 3) products_of_some<L, 3>(n, r, own, i, other);
  if (i + 2 <= own.end) {
    products_of_some<L, 2>(n, r, own, i, other);
  } else if (i < own.end) {
    products_of_some<L, 1>(n, r, own, i, other);
  }
}

/// f(Dim<n>{}) for n in 1 .. kMost.
template <int kMost, class F>
COHORT_LANE void with_count(int n, F f) {
  if (n == kMost) {
    f(Dim<kMost>{});
  } else if constexpr (kMost > 1) {
    with_count<kMost - 1>(n, f);
  }
}

/// Calls f(first row, Dim<rows>) for a block's rows in as few parts of at most kMost rows as there can be, of much the
/// same size: what is read for a part costs the same for few rows as for many.
template <int kMost, class F>
COHORT_LANE void in_parts(const RowBlock& block, F f) {
  for (int i = block.row; i < block.end;) {
    const int left = block.end - i, parts = (left + kMost - 1) / kMost, some = (left + parts - 1) / parts;
    with_count<kMost>(some, [&](auto rows) { f(i, rows); });
    i += some;
  }
}

/// Block b's part of r.start, r.warm, r.scaled and r.delassus, from its J in r.scaled. Products of rows of different
/// trees are not written, nor are they read.
/// Reads w.acc_smooth, w.factor, r.difference, r.root.
template <class L>
COHORT_KERNEL void delassus_of_rows(const ModelView& m, const Workspace<L>& w, RowSpace<L>& r, const RowBlocks& blocks,
                                    int b) {
  const RowBlock& own = blocks.block[b];
  const int n = blocks.rows;
  in_parts<6>(own, [&](int first, auto rows) {
    begin_rows<L, decltype(rows)::kDim>(own, r, first, w.acc_smooth, r.difference);
  });
  in_parts<12>(own, [&](int first, auto rows) { scale_rows<L, decltype(rows)::kDim>(m, w.factor, own, r, first); });
  for (int other = 0; b == blocks.count && other < b; ++other) {
    products_of_blocks<L>(n, r, own, blocks.block[other]);
  }
  products_of_blocks<L>(n, r, own, own);
}

}  // namespace cohort::sim
