/// The rows of an environment one behind the other: what a block's groups hold for all lanes, a line of the cache per
/// number, is read once, while it is there, and what a lane has of it lies together for whoever packs it (row_packs.h).
#pragma once
#include "sim/kernels/row_blocks.h"

namespace cohort::sim {

/// Instead of infinity.
inline constexpr float kNoLimit = 3e38f;

/// A group's record: kHead floats, then weight and aref of every edge, then the Jacobian, (dofs, edges).
struct RowRecord {
  static constexpr int kDofs = 0, kFirstDof = 1, kEdges = 2, kLow = 3, kHigh = 4, kHead = 5;
  static constexpr int kPerEdge = 2;
  COHORT_LANE static int size(int dofs, int edges) { return kHead + edges * (kPerEdge + dofs); }
};

/// Floats that the records of an environment in the row space take at most.
COHORT_LANE int record_floats(const ModelView& m, const ConstraintCapacity& most) {
  return m.row_space * RowRecord::size(most.row_dofs, 1);
}

/// Writes the record of a group with kDim rows and returns its end; kDim 0: any group.
template <class L, int kDim, class To>
COHORT_LANE int write_record(const Group& g, typename L::Ptr piece, int lane, To to) {
  const auto entry = [&](int i, int a) { return get_lane(piece[i * g.dofs + a], lane); };
  const int dim = kDim > 0 ? kDim : g.dim, edges = kDim == 3 ? 4 : kDim == 1 ? 1 : g.edges;
  const bool alike = weights_of(g.kind, g.dim) == 1;
  to[RowRecord::kDofs] = static_cast<float>(g.dofs);
  to[RowRecord::kFirstDof] = static_cast<float>(g.first_dof);
  to[RowRecord::kEdges] = static_cast<float>(edges);
  to[RowRecord::kLow] = g.kind == kGroupEquality ? -kNoLimit : g.kind == kGroupFriction ? -g.loss : 0.0f;
  to[RowRecord::kHigh] = g.kind == kGroupFriction ? g.loss : kNoLimit;
  int at = RowRecord::kHead;
  for (int e = 0; e < edges; ++e) {
    to[at++] = get_lane(piece[g.layout.weight + (alike ? 0 : e)], lane);
    to[at++] = get_lane(piece[g.layout.aref + e], lane);
  }
  if (kDim > 1 || g.kind == kGroupPyramid) {
    float friction[kMaxDim];
    for (int k = 1; k < dim; ++k) friction[k] = g.own ? get_lane(piece[g.own + k - 1], lane) : g.friction[k - 1];
    for (int a = 0; a < g.dofs; ++a) {
      const float normal = entry(0, a);
      for (int k = 1; k < dim; ++k) {
        const float side = entry(k, a) * friction[k];
        to[at++] = normal + side;
        to[at++] = normal - side;
      }
    }
    return at;
  }
  for (int a = 0; a < g.dofs; ++a) {
    for (int i = 0; i < dim; ++i) to[at++] = entry(i, a);
  }
  return at;
}

/// Records the rows of `lanes`, tree by tree. records, floats: memory, and what each lane has of it.
template <class L>
COHORT_KERNEL void record_rows(const Constraints<L>& c, int trees, unsigned lanes, typename L::Ptr records, int floats,
                               RowCounts<L>& counts) {
  int at[L::kWidth];
  for (int& i : at) i = 0;
  const auto mark = [&](int t) {
    for (int lane = 0; lane < L::kWidth; ++lane) counts.records[t][lane] = at[lane];
  };
  for (int t = 0; t <= trees; ++t) {
    mark(t);
    for (int k = counts.first_group[t]; k >= 0; k = c.group[k].next_of_tree) {
      const Group& g = c.group[k];
      const auto piece = c.pool + g.at;
      for (unsigned left = g.lanes & lanes; left != 0; left &= left - 1) {
        const int lane = lowest_bit(left);
        const auto to = floats_of_lane(records, floats, lane) + at[lane];
        if (g.kind == kGroupPyramid && g.dim == 3) {
          at[lane] += write_record<L, 3>(g, piece, lane, to);
        } else if (g.dim == 1) {
          at[lane] += write_record<L, 1>(g, piece, lane, to);
        } else {
          at[lane] += write_record<L, 0>(g, piece, lane, to);
        }
      }
    }
  }
  mark(trees + 1);
}

}  // namespace cohort::sim
