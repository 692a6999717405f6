/// Everything that a block of environments, one per lane, is computed in, and how it lies in memory of values and
/// memory of integers.
#pragma once
#include "sim/kernels/solve/delassus.h"
#include "sim/kernels/solve/hessian.h"

namespace cohort::sim {

template <class L>
struct BlockSpace {
  Workspace<L> w;
  Constraints<L> c;
  SolverSpace<L> s;
  RowSpace<L> r;
  typename L::M sound;  ///< lanes whose coordinates, activations and inputs are numbers, of some size
};

/// Integers that a block wants beside lay_out.
struct IntegerSizes {
  int groups, cols, start, bits;
};
COHORT_LANE IntegerSizes integer_sizes(const ModelView& m, const ConstraintCapacity& most) {
  return {most.groups, m.nv * (m.nv + 1) / 2, m.nv + 1, m.nv * ((m.nv + 63) / 64)};
}

/// Lays out a block. most: the model's constraint_capacity.
template <class L>
COHORT_LANE void lay_out(const ModelView& m, const ConstraintCapacity& most, Arena<L>& values, BlockSpace<L>& b) {
  // What every iteration reads and writes most comes first, while there is hot memory.
  b.s.hessian = values.take_hot(triangle(m.nv, 0));
  lay_out<L>(m, values, b.w);
  b.c.pool = values.take(most.pool);
  b.c.rows = values.take(most.rows), b.c.cones = values.take(most.cones);
  b.c.geom_pos = values.take(3 * m.ngeom), b.c.geom_rot = values.take(9 * m.ngeom);
  b.c.tree_box = values.take(m.tree_boxes != 0 ? 6 * m.nbody : 0);
  SolverSpace<L>& s = b.s;
  s.Ma = values.take_hot(m.nv), s.grad = values.take_hot(m.nv), s.search = values.take_hot(m.nv);
  s.Mv = values.take_hot(m.nv);
  s.grad_old = values.take(m.nv), s.precond = values.take(m.nv), s.precond_old = values.take(m.nv);
  s.sum = values.take(m.option.newton != 0 && m.neq > 0 ? triangle(m.nv, 0) : 0);
  lay_out<L>(m, values, b.r);
}
/// The same, of all values in one piece; returns the number of values per lane. With a null base it only counts.
template <class L>
COHORT_LANE int lay_out(const ModelView& m, const ConstraintCapacity& most, typename L::Ptr base, BlockSpace<L>& b) {
  Arena<L> values{base};
  lay_out<L>(m, most, values, b);
  return values.used;
}

}  // namespace cohort::sim
