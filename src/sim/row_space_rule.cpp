#include "sim/row_space_rule.h"

#include <algorithm>
#include <cstddef>

#include "core/error.h"

namespace cohort::sim {

int choose_row_space(const Model& model, int wanted) {
  COHORT_THROW_UNLESS(wanted <= kMostRowSpaceRows, "a row space of {} rows: {} is the most", wanted, kMostRowSpaceRows);
  // The accelerations are the smaller unknown where the factor of the inertia matrix is cheap and environments of a
  // block have the same constraints. Trees of six dofs, a single free body, are always better off with them; larger
  // ones up to kLeastProducts are where environments differ, which takes many pairs of geoms that may touch (a
  // quadruped's feet are four), and have few rows. Two iterations do not pay for the products of the rows. Measured:
  // docs/design/decisions/row-space.md.
  constexpr long kLeastProducts = 500, kLeastProductsPerDof = 7;
  constexpr int kLeastIterations = 3, kRowsOfSmallTrees = 24;
  const ModelView& v = model.sizes;
  if (v.option.newton == 0) return 0;
  long products = 0, of_tree = 0, of_largest = 0;
  for (std::size_t d = 0; d + 1 < model.pattern_start.size(); ++d) {
    const long above = model.pattern_start[d + 1] - model.pattern_start[d] - 1, own = above * (above + 1) / 2;
    products += own;
    of_tree = above == 0 ? own : of_tree + own;
    of_largest = std::max(of_largest, of_tree);
  }
  if (wanted < 0) {
    const bool large = of_largest >= kLeastProducts;
    const bool differ = products >= kLeastProductsPerDof * v.nv && 2 * v.npair >= v.nv;
    if (v.option.iterations < kLeastIterations || !(large || differ)) return 0;
    wanted = large ? kMostRowSpaceRows : kRowsOfSmallTrees;
  }
  int rows = v.nfriction + 2 * v.nlimit;
  for (const EqualityRecord& e : model.equality) rows += equality_dim(e);
  for (const PairRecord& p : model.pair) {
    if (p.dof_count == 0) continue;  // no rows
    if (v.option.elliptic != 0 && p.dim > 1) return 0;
    rows += contact_edges(p.dim, false) * p.max_contacts;
  }
  return std::min({rows, wanted, kMostRowSpaceRows});
}

}  // namespace cohort::sim
