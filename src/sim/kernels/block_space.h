/// Everything that the environments of a block, one per lane, are computed in, and how it lies in memory of values and
/// memory of integers.
#pragma once
#include "sim/kernels/hessian.h"
#include "sim/kernels/row_products.h"

namespace cohort::sim {

template <class L>
struct BlockSpace {
  Workspace<L> w;
  Constraints<L> c;
  SolverSpace<L> s;
  RowSpace<L> r;
};

/// Bytes of integers that lay_out wants.
struct IntegerSizes {
  int groups, cols, start, bits;
};
COHORT_LANE IntegerSizes integer_sizes(const ModelView& m, const ConstraintCapacity& most) {
  return {most.groups, m.nv * (m.nv + 1) / 2, m.nv + 1, m.nv * ((m.nv + 63) / 64)};
}
COHORT_LANE IntegerSizes integer_sizes(const ModelView& m) {
  return integer_sizes(m, constraint_capacity(m));
}

/// Lays out n blocks that are stepped together: they share what the next one may overwrite after a block's constraints
/// are recorded. Returns the number of values per lane. With a null base it only counts. most: the model's
/// constraint_capacity.
template <class L>
COHORT_LANE int lay_out(const ModelView& m, const ConstraintCapacity& most, typename L::Ptr base, BlockSpace<L>* blocks,
                        int n) {
  Carver<L> values{base};
  Constraints<L>& c = blocks[0].c;
  c.pool = values.take(most.pool), c.rows = values.take(most.rows), c.cones = values.take(most.cones);
  c.geom_pos = values.take(3 * m.ngeom), c.geom_rot = values.take(9 * m.ngeom);
  c.stems = values.take(m.stem_values);
  c.tree_box = values.take(m.tree_boxes != 0 ? 6 * m.nbody : 0);
  SolverSpace<L>& s = blocks[0].s;
  s.Ma = values.take(m.nv), s.grad = values.take(m.nv), s.search = values.take(m.nv), s.Mv = values.take(m.nv);
  s.grad_old = values.take(m.nv), s.precond = values.take(m.nv), s.precond_old = values.take(m.nv);
  s.hessian = values.take(triangle(m.nv, 0)), s.constant = values.take(m.neq > 0 ? triangle(m.nv, 0) : 0);
  carve<L>(m, values, n > 1, blocks[0].r);
  for (int i = 0; i < n; ++i) {
    BlockSpace<L>& b = blocks[i];
    if (i > 0) b.s = s, b.r = blocks[0].r, b.c = c;
    b.c.record_floats = record_floats(m, most);
    b.c.records = values.take(b.c.record_floats);
    carve<L>(m, values, b.w);
  }
  return values.used;
}
template <class L>
COHORT_LANE int lay_out(const ModelView& m, typename L::Ptr base, BlockSpace<L>& b) {
  return lay_out<L>(m, constraint_capacity(m), base, &b, 1);
}

}  // namespace cohort::sim
